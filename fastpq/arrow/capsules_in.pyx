"""Import of Arrow capsules: schemas become FieldNodes, arrays and streams become owners of the producer's memory.

Every structure is moved out of its capsule and released exactly once. A schema is released after it is read. An array is
released with the last NumPy array over its buffers. A stream is released when it is closed or deallocated. A stream is called
without the GIL, because the producer may wait for threads that need the GIL.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from cpython.ref cimport Py_INCREF
from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.string cimport memcpy, memset, strerror

from fastpq.arrow.abi cimport ArrowArray, ArrowArrayStream, ArrowSchema

import numpy as np

from fastpq.arrays.nodes import FieldNode
from fastpq.errors import LimitError, SchemaError
from fastpq.format.slots import make_instance, place_of

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyArray_Descr:
        pass
    object PyArray_NewFromDescr(PyTypeObject* cls, PyArray_Descr* descr, int nd, const cnp.npy_intp* dims,
                                const cnp.npy_intp* strides, void* data, int flags, PyObject* obj)
    PyTypeObject PyArray_Type

cdef object BYTE = np.dtype(np.uint8)
cdef dict FIELD_PLACES = {name: place_of(getattr(FieldNode, name)) for name in FieldNode.__match_args__}

# Largest array length and largest array offset. With them, (length + offset) * 32 fits int64. 32 bytes (decimal256) is the
# largest width among the formats that do not declare their width.
cdef int64_t MAX_LENGTH = INT64_MAX // 64


cdef void* structure(object capsule, const char* name) except NULL:
    if not PyCapsule_IsValid(capsule, name):
        raise SchemaError(f"expected a capsule named {(<bytes> name).decode()!r}, not {capsule!r}")
    return PyCapsule_GetPointer(capsule, name)


cdef enum:
    MAX_DEPTH = 64      # largest nesting depth of a column's type, which limits how deep read_schema recurses


# ---- schema

def take_schema(capsule):
    """Read and release the schema in a capsule.

    Returns:
        The schema as a FieldNode.

    Raises:
        SchemaError: the schema was released or moved already, or it breaks a rule in the C data interface.
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
    """Return a schema as a FieldNode. Raise LimitError if its children have more than ``depth`` levels."""
    cdef int64_t i
    cdef list children = []
    if schema.format == NULL:
        raise SchemaError("an Arrow schema has no format string")
    name = b"" if schema.name == NULL else <bytes> schema.name
    if schema.n_children < 0 or (schema.n_children > 0 and schema.children == NULL):
        raise SchemaError(f"an Arrow schema claims {schema.n_children} children but has no list of them")
    if schema.n_children > 0 and depth == 0:
        raise LimitError(f"an Arrow type is nested deeper than {MAX_DEPTH} levels, or is a nested dictionary")
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
        return make_instance(FieldNode, FIELD_PLACES, (
            (<bytes> schema.format).decode(), name.decode(), schema.flags, read_metadata(schema.metadata), tuple(children),
            dictionary))
    except UnicodeDecodeError:
        raise SchemaError(f"the name or format of the Arrow field {name!r} is not UTF-8") from None


cdef dict read_metadata(const char* packed):
    """Return the key-value pairs of ``ArrowSchema.metadata``, or None for NULL."""
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
        raise SchemaError(f"the metadata of an Arrow schema has the negative length {length}")
    return length


cdef bytes read_bytes(const char** cursor):
    cdef int32_t length = read_length(cursor)
    cdef bytes value = cursor[0][:length]
    cursor[0] += length
    return value


# ---- array

@cython.no_gc       # refers to nothing but its parent. A wide table has thousands of arrays
cdef class ForeignArray:
    """A producer's ArrowArray.

    It is either owned and released on deallocation, or borrowed from another ForeignArray.

    Attributes:
        length: value count.
        offset: number of values that the buffers have before the array's first value.
        null_count: number of nulls, or -1 if the producer has not counted them.
        n_buffers: number of buffers.
        n_children: number of children.
    """

    cdef ArrowArray own     # the owned structure, or zeros if it is borrowed
    cdef ArrowArray* array  # the structure, owned or borrowed
    cdef object parent      # ForeignArray that owns a borrowed structure, else None
    cdef readonly int64_t length, offset, null_count, n_buffers, n_children

    def __cinit__(self):
        memset(&self.own, 0, sizeof(ArrowArray))
        self.array = &self.own

    def __dealloc__(self):
        if self.own.release != NULL:
            self.own.release(&self.own)

    cdef ForeignArray checked(self):
        """Check the structure's numbers, and return this ForeignArray with them."""
        check_array(self.array)
        self.length, self.offset, self.null_count = self.array.length, self.array.offset, self.array.null_count
        self.n_buffers, self.n_children = self.array.n_buffers, self.array.n_children
        return self

    cdef ForeignArray borrow(self, ArrowArray* array):
        """Return a structure inside this array as a ForeignArray, which keeps this array alive."""
        cdef ForeignArray borrowed_array = ForeignArray()
        borrowed_array.array = array
        borrowed_array.parent = self
        return borrowed_array.checked()

    def buffer(self, int64_t index, int64_t size):
        """Return a buffer as a NumPy array over the producer's memory.

        Args:
            index: buffer index.
            size: buffer size in bytes, computed from the array's length and type.

        Returns:
            A read-only uint8 array of ``size`` bytes, which keeps the ForeignArray alive. None for a NULL pointer.
        """
        cdef const void* data
        if index < 0 or index >= self.array.n_buffers or size < 0:
            raise SchemaError(f"{size} bytes of buffer {index} are needed, but an Arrow array has {self.array.n_buffers} buffers")
        data = self.array.buffers[index]
        if data == NULL:
            return None
        return self._over(data, BYTE, size)

    def values(self, int64_t index, cnp.dtype dtype not None, int64_t offset, int64_t length):
        """Return values of a buffer as a NumPy array over the producer's memory, which keeps the ForeignArray alive.

        Args:
            index: buffer index.
            dtype: the values' dtype.
            offset: number of values before the first one.
            length: value count.

        Returns:
            A read-only array. It is a copy if the producer's memory is unaligned.

        Raises:
            SchemaError: the buffer does not exist, or is NULL and not empty.
        """
        cdef int64_t width = dtype.itemsize
        cdef const char* data
        if offset < 0 or length < 0 or length > INT64_MAX - offset or offset + length > INT64_MAX // max(width, 1):
            raise SchemaError(f"buffer {index} of an Arrow array would need {(<object>offset + length) * width} bytes")
        if index < 0 or index >= self.array.n_buffers:
            raise SchemaError(f"{(offset + length) * width} bytes of buffer {index} are needed, "
                              f"but an Arrow array has {self.array.n_buffers} buffers")
        data = <const char*> self.array.buffers[index]
        if data == NULL:
            if offset + length > 0:
                raise SchemaError(f"buffer {index} of an Arrow array is NULL, but {(offset + length) * width} bytes are needed")
            return np.zeros(0, dtype)
        view = self._over(data + offset * width, dtype, length)
        return view if cnp.PyArray_ISALIGNED(view) else view.copy()

    def plain_values(self, cnp.dtype dtype not None, int64_t start, int64_t length):
        """Return fixed-width values as ``values`` does, if the array has no validity bitmap and its memory is aligned. Else None.

        Args:
            dtype: the values' dtype.
            start: index of the first value.
            length: value count. The array has as many values from ``start`` on.
        """
        cdef const char* data
        cdef int64_t width = dtype.itemsize, offset = self.array.offset + start
        if length == 0 or self.array.n_buffers != 2 or self.array.null_count > 0 or self.array.buffers[0] != NULL:
            return None
        data = <const char*> self.array.buffers[1]
        if data == NULL or offset + length > INT64_MAX // max(width, 1):
            return None
        view = self._over(data + offset * width, dtype, length)
        return view if cnp.PyArray_ISALIGNED(view) else None

    cdef cnp.ndarray _over(self, const void* data, object dtype, cnp.npy_intp length):
        """Return a read-only array over the producer's memory."""
        Py_INCREF(dtype)            # the array takes a reference
        view = PyArray_NewFromDescr(
            &PyArray_Type, <PyArray_Descr*><PyObject*>dtype, 1, &length, NULL, <void*> data, 0, NULL)
        cnp.set_array_base(view, self)
        return view

    def take_children(self):
        """Move each child into its own owner, and release this array, as the C data interface requires."""
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
            child.checked()
        return children

    def child(self, int64_t index):
        """Return a child as a borrowed ForeignArray, which keeps this array alive.

        Args:
            index: child index, less than n_children.
        """
        if not 0 <= index < self.array.n_children or self.array.children[index] == NULL:
            raise SchemaError(f"child {index} of an Arrow array is missing")
        if self.array.children[index].release == NULL:
            raise SchemaError(f"child {index} of an Arrow array was released")
        return self.borrow(self.array.children[index])

    def dictionary(self):
        """Return the dictionary as a borrowed ForeignArray that keeps this array alive, or None if there is no dictionary."""
        return None if self.array.dictionary == NULL else self.borrow(self.array.dictionary)


cdef int check_array(const ArrowArray* array) except -1:
    """Raise SchemaError if an array has numbers that no type allows."""
    if array.length < 0 or array.offset < 0 or array.length > MAX_LENGTH or array.offset > MAX_LENGTH:
        raise SchemaError(f"an Arrow array has the impossible length {array.length} or offset {array.offset}")
    if array.null_count < -1 or array.null_count > array.length:
        raise SchemaError(f"an Arrow array of {array.length} values claims {array.null_count} nulls")
    if array.n_buffers < 0 or (array.n_buffers > 0 and array.buffers == NULL):
        raise SchemaError(f"an Arrow array claims {array.n_buffers} buffers but has no list of them")
    if array.n_children < 0 or (array.n_children > 0 and array.children == NULL):
        raise SchemaError(f"an Arrow array claims {array.n_children} children but has no list of them")
    return 0


def take_array(capsule):
    """Move the array out of a capsule.

    Returns:
        A ForeignArray, which owns the array.

    Raises:
        SchemaError: the array was released or moved already, or has impossible numbers.
    """
    cdef ArrowArray* source = <ArrowArray*> structure(capsule, "arrow_array")
    cdef ForeignArray array = ForeignArray()
    if source.release == NULL:
        raise SchemaError("the Arrow array was released or consumed already")
    array.own = source[0]
    source.release = NULL
    return array.checked()


# ---- stream

cdef class ForeignStream:
    """An iterator over the arrays in a producer's ArrowArrayStream, which is moved out of a capsule.

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
            raise SchemaError("the producer of an Arrow stream returned a released schema")
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
            memset(&array.own, 0, sizeof(ArrowArray))  # a failed call may leave undefined bytes
        self.check(code, "next array")
        if array.own.release == NULL:
            self.close()
            raise StopIteration
        return array.checked()

    cpdef close(self):
        """Release the stream. Arrays from the stream stay valid."""
        if self.stream.release != NULL:
            with nogil:
                self.stream.release(&self.stream)

    cdef int check(self, int code, str part) except -1:
        cdef const char* message
        if code == 0:
            return 0
        message = self.stream.get_last_error(&self.stream)
        reason = (<bytes> (strerror(code) if message == NULL else message)).decode(errors="replace")
        raise SchemaError(f"the producer of an Arrow stream failed to return its {part}: {reason}")
