"""Import of Arrow capsules: schemas as FieldNodes, arrays and streams as owners of a producer's memory.

Every structure is moved out of its capsule and released exactly once: a schema after reading, an array with the last NumPy
array over its buffers, a stream when closed or deallocated. Calls of a stream run without the GIL, because the producer may wait
for threads in need of the GIL.
"""

cimport numpy as cnp
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.string cimport memcpy, memset, strerror

from fastpq.arrow.abi cimport ArrowArray, ArrowArrayStream, ArrowSchema

from fastpq.arrays.nodes import FieldNode
from fastpq.errors import LimitError, SchemaError

cnp.import_array()

# Most values of an array, and most before its offset: (length + offset) * 32 fits int64. 32 bytes, of decimal256, is the
# greatest width of a format without a declared width.
cdef int64_t MAX_LENGTH = INT64_MAX // 64


cdef void* structure(object capsule, const char* name) except NULL:
    if not PyCapsule_IsValid(capsule, name):
        raise SchemaError(f"expected a capsule named {(<bytes> name).decode()!r}, got {capsule!r}")
    return PyCapsule_GetPointer(capsule, name)


cdef enum:
    MAX_DEPTH = 64      # most levels of nested types below a table; bounds the recursion of read_schema


# ---- schema

def take_schema(capsule):
    """Read and release the schema in ``capsule``.

    Returns:
        The schema as a FieldNode.

    Raises:
        SchemaError: the schema was released or moved already, or breaks the rules of the C data interface.
    """
    cdef ArrowSchema* source = <ArrowSchema*> structure(capsule, "arrow_schema")
    cdef ArrowSchema schema
    if source.release == NULL:
        raise SchemaError("the Arrow schema was released or consumed already")
    schema = source[0]
    source.release = NULL
    try:
        return read_schema(&schema, MAX_DEPTH)
    finally:
        schema.release(&schema)


cdef object read_schema(const ArrowSchema* schema, int depth):
    """The FieldNode of a schema; raises LimitError below ``depth`` levels of children."""
    cdef int64_t i
    cdef list children = []
    if schema.format == NULL:
        raise SchemaError("an Arrow schema has no format string")
    name = b"" if schema.name == NULL else <bytes> schema.name
    if schema.n_children < 0 or (schema.n_children > 0 and schema.children == NULL):
        raise SchemaError(f"an Arrow schema claims {schema.n_children} children and has no list of them")
    if schema.n_children > 0 and depth == 0:
        raise LimitError(f"an Arrow type nested deeper than {MAX_DEPTH} levels, or a nested dictionary")
    for i in range(schema.n_children):
        if schema.children[i] == NULL or schema.children[i].release == NULL:
            raise SchemaError(f"child {i} of an Arrow schema is missing or was released")
        children.append(read_schema(schema.children[i], depth - 1))
    dictionary = None
    if schema.dictionary != NULL:
        if schema.dictionary.dictionary != NULL:
            raise SchemaError("an Arrow dictionary is itself dictionary-encoded")
        dictionary = read_schema(schema.dictionary, 0)
    try:
        return FieldNode((<bytes> schema.format).decode(), name.decode(), schema.flags, read_metadata(schema.metadata),
                         tuple(children), dictionary)
    except UnicodeDecodeError:
        raise SchemaError(f"the name or format of the Arrow field {name!r} is not UTF-8") from None


cdef dict read_metadata(const char* packed):
    """The key-value pairs of ``ArrowSchema.metadata``; None for NULL."""
    cdef dict metadata = {}
    if packed == NULL:
        return None
    for _ in range(read_length(&packed)):
        key = read_bytes(&packed)
        metadata[key] = read_bytes(&packed)
    return metadata


cdef int32_t read_length(const char** cursor) except -1:
    cdef int32_t length
    memcpy(&length, cursor[0], sizeof(length))
    cursor[0] += sizeof(length)
    if length < 0:
        raise SchemaError(f"the metadata of an Arrow schema holds the length {length}")
    return length


cdef bytes read_bytes(const char** cursor):
    cdef int32_t length = read_length(cursor)
    cdef bytes value = cursor[0][:length]
    cursor[0] += length
    return value


# ---- array

cdef class ForeignArray:
    """An ArrowArray of a producer: owned, and released on deallocation, or part of another ForeignArray and borrowed."""

    cdef ArrowArray own     # an owned structure; zeros for a borrowed one
    cdef ArrowArray* array  # the structure, owned or borrowed
    cdef object parent      # owner of a borrowed structure; None otherwise

    def __cinit__(self):
        memset(&self.own, 0, sizeof(ArrowArray))
        self.array = &self.own

    def __dealloc__(self):
        if self.own.release != NULL:
            self.own.release(&self.own)

    @property
    def length(self):
        """Number of values."""
        return self.array.length

    @property
    def offset(self):
        """Number of values in the buffers before the array's first value."""
        return self.array.offset

    @property
    def null_count(self):
        """Number of nulls; -1 where the producer has not counted nulls."""
        return self.array.null_count

    @property
    def n_buffers(self):
        """Number of buffers."""
        return self.array.n_buffers

    @property
    def n_children(self):
        """Number of children."""
        return self.array.n_children

    def buffer(self, int64_t index, int64_t size):
        """A buffer as a NumPy array over the producer's memory.

        Args:
            index: number of the buffer, from 0.
            size: bytes of the buffer, computed from the array's length and type.

        Returns:
            Read-only uint8 array of ``size`` bytes, which keeps the ForeignArray alive; None for a NULL pointer.
        """
        cdef cnp.npy_intp shape = size
        cdef const void* data
        if index < 0 or index >= self.array.n_buffers or size < 0:
            raise SchemaError(f"an Arrow array has {self.array.n_buffers} buffers, and {size} bytes of buffer {index} are needed")
        data = self.array.buffers[index]
        if data == NULL:
            return None
        view = cnp.PyArray_SimpleNewFromData(1, &shape, cnp.NPY_UINT8, <void*> data)
        cnp.set_array_base(view, self)
        view.flags.writeable = False
        return view

    def take_children(self):
        """Move the children out, each into an owner of its own, and release this array, as the C data interface requires."""
        cdef int64_t i
        cdef ForeignArray child
        cdef list children = []
        if self.own.release == NULL:
            raise SchemaError("the children of an Arrow array were taken already")
        for i in range(self.array.n_children):
            if self.array.children[i] == NULL or self.array.children[i].release == NULL:
                raise SchemaError(f"child {i} of an Arrow array is missing or was released")
        for i in range(self.array.n_children):
            child = ForeignArray()
            child.own = self.array.children[i][0]
            self.array.children[i].release = NULL
            children.append(child)
        self.own.release(&self.own)
        memset(&self.own, 0, sizeof(ArrowArray))
        for child in children:
            check_array(child.array)
        return children

    def child(self, int64_t index):
        """A child as a borrowed ForeignArray, which keeps this array alive.

        Args:
            index: number of the child, from 0 to n_children - 1.
        """
        cdef ForeignArray child = ForeignArray()
        if not 0 <= index < self.array.n_children or self.array.children[index] == NULL:
            raise SchemaError(f"child {index} of an Arrow array is missing")
        if self.array.children[index].release == NULL:
            raise SchemaError(f"child {index} of an Arrow array was released")
        child.array = self.array.children[index]
        child.parent = self
        check_array(child.array)
        return child

    def dictionary(self):
        """The dictionary as a borrowed ForeignArray, which keeps this array alive; None without a dictionary."""
        cdef ForeignArray dictionary
        if self.array.dictionary == NULL:
            return None
        dictionary = ForeignArray()
        dictionary.array = self.array.dictionary
        dictionary.parent = self
        check_array(dictionary.array)
        return dictionary


cdef int check_array(const ArrowArray* array) except -1:
    """Raise SchemaError for an array with numbers impossible for every type."""
    if array.length < 0 or array.offset < 0 or array.length > MAX_LENGTH or array.offset > MAX_LENGTH:
        raise SchemaError(f"an Arrow array has length {array.length} and offset {array.offset}")
    if array.null_count < -1 or array.null_count > array.length:
        raise SchemaError(f"an Arrow array of {array.length} values claims {array.null_count} nulls")
    if array.n_buffers < 0 or (array.n_buffers > 0 and array.buffers == NULL):
        raise SchemaError(f"an Arrow array claims {array.n_buffers} buffers and has no list of them")
    if array.n_children < 0 or (array.n_children > 0 and array.children == NULL):
        raise SchemaError(f"an Arrow array claims {array.n_children} children and has no list of them")
    return 0


def take_array(capsule):
    """Move the array out of ``capsule``.

    Returns:
        A ForeignArray, the array's owner.

    Raises:
        SchemaError: the array was released or moved already, or has impossible numbers.
    """
    cdef ArrowArray* source = <ArrowArray*> structure(capsule, "arrow_array")
    cdef ForeignArray taken = ForeignArray()
    if source.release == NULL:
        raise SchemaError("the Arrow array was released or consumed already")
    taken.own = source[0]
    source.release = NULL
    check_array(taken.array)
    return taken


# ---- stream

cdef class ForeignStream:
    """Owner of a producer's ArrowArrayStream, moved out of ``capsule``; an iterator of its arrays.

    Raises:
        SchemaError: the stream was released or consumed already, or the producer reports an error.
    """

    cdef ArrowArrayStream stream
    cdef readonly object schema

    def __cinit__(self, capsule):
        cdef ArrowArrayStream* source = <ArrowArrayStream*> structure(capsule, "arrow_array_stream")
        cdef ArrowSchema schema
        cdef int code
        memset(&self.stream, 0, sizeof(ArrowArrayStream))
        if source.release == NULL:
            raise SchemaError("the Arrow stream was released or consumed already")
        self.stream = source[0]
        source.release = NULL
        memset(&schema, 0, sizeof(ArrowSchema))
        with nogil:
            code = self.stream.get_schema(&self.stream, &schema)
        self.check(code, "schema")
        if schema.release == NULL:
            raise SchemaError("the producer of an Arrow stream gave a released schema")
        try:
            self.schema = read_schema(&schema, MAX_DEPTH)
        finally:
            schema.release(&schema)

    def __dealloc__(self):
        self.close()

    def __iter__(self):
        return self

    def __next__(self):
        cdef ForeignArray array = ForeignArray()
        cdef int code
        if self.stream.release == NULL:
            raise StopIteration
        with nogil:
            code = self.stream.get_next(&self.stream, &array.own)
        if code != 0:
            memset(&array.own, 0, sizeof(ArrowArray))  # a failed call leaves undefined bytes
        self.check(code, "next array")
        if array.own.release == NULL:
            self.close()
            raise StopIteration
        check_array(array.array)
        return array

    cpdef close(self):
        """Release the stream; arrays taken from the stream stay valid."""
        if self.stream.release != NULL:
            with nogil:
                self.stream.release(&self.stream)

    cdef int check(self, int code, str what) except -1:
        cdef const char* message
        if code == 0:
            return 0
        message = self.stream.get_last_error(&self.stream)
        reason = (<bytes> (strerror(code) if message == NULL else message)).decode(errors="replace")
        raise SchemaError(f"the producer of an Arrow stream failed to give its {what}: {reason}")
