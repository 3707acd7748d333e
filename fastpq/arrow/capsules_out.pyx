"""Export of FieldNodes and ArrayNodes as Arrow capsules: ArrowSchema, ArrowArray and ArrowArrayStream for a consumer.

A schema consists of C memory only. An array keeps a tuple with the NumPy arrays whose memory its buffers use. Its release
callback acquires the GIL and drops the tuple, in any thread. A consumer may move a structure or a child out and release it later.
"""

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.errno cimport EIO, ENOMEM
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from fastpq.arrow.abi cimport ArrowArray, ArrowArrayStream, ArrowSchema

from fastpq.errors import SchemaError

cdef extern from "Python.h":
    bint Py_IsInitialized() nogil

cnp.import_array()


# ---- schema

cdef void release_schema(ArrowSchema* schema) noexcept nogil:
    cdef int64_t i
    if schema.children != NULL:
        for i in range(schema.n_children):
            drop_schema(schema.children[i])
    drop_schema(schema.dictionary)
    free(schema.children)
    free(<void*> schema.format)
    free(<void*> schema.name)
    free(<void*> schema.metadata)
    schema.release = NULL


cdef void drop_schema(ArrowSchema* schema) noexcept nogil:
    if schema != NULL:
        if schema.release != NULL:
            schema.release(schema)
        free(schema)


cdef char* c_copy(bytes text) except NULL:
    """Return a copy of the text, with a terminating zero, in C memory."""
    cdef char* copy = <char*> malloc(len(text) + 1)
    if copy == NULL:
        raise MemoryError
    memcpy(copy, <const char*> text, len(text) + 1)
    return copy


cdef bytes c_string(str text):
    if "\0" in text:
        raise SchemaError(f"the name {text!r} has a zero byte, which Arrow's C data interface cannot represent")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SchemaError(f"the name {text!r} is not valid Unicode text: {error.reason}") from None


cdef bytes packed_metadata(dict pairs):
    cdef list parts = [length_prefix(len(pairs))]
    for key, value in pairs.items():
        parts += [length_prefix(len(key)), key, length_prefix(len(value)), value]
    return b"".join(parts)


cdef bytes length_prefix(int32_t length):
    return (<char*> &length)[:sizeof(length)]


cdef int fill_schema(ArrowSchema* schema, object node) except -1:
    """Write a node into a schema. If this raises an exception, the schema is released."""
    cdef int64_t i
    memset(schema, 0, sizeof(ArrowSchema))
    schema.release = release_schema
    try:
        schema.flags = node.flags
        schema.format = c_copy(node.format.encode())
        schema.name = c_copy(c_string(node.name))
        if node.metadata:
            schema.metadata = c_copy(packed_metadata(node.metadata))
        if node.children:
            schema.children = <ArrowSchema**> zeroed_memory(len(node.children) * sizeof(ArrowSchema*))
            schema.n_children = len(node.children)
            for i in range(schema.n_children):
                schema.children[i] = <ArrowSchema*> zeroed_memory(sizeof(ArrowSchema))
                fill_schema(schema.children[i], node.children[i])
        if node.dictionary is not None:
            schema.dictionary = <ArrowSchema*> zeroed_memory(sizeof(ArrowSchema))
            fill_schema(schema.dictionary, node.dictionary)
    except BaseException:
        release_schema(schema)
        raise
    return 0


cdef int check_schema(object node) except -1:
    """Raise the error that fill_schema would raise for a node, but fill nothing."""
    c_string(node.name)
    for child in node.children:
        check_schema(child)
    if node.dictionary is not None:
        check_schema(node.dictionary)
    return 0


cdef void* zeroed_memory(size_t size) except NULL:
    cdef void* memory = calloc(1, size)
    if memory == NULL:
        raise MemoryError
    return memory


# ---- array

cdef void release_array(ArrowArray* array) noexcept nogil:
    cdef int64_t i
    if array.children != NULL:
        for i in range(array.n_children):
            drop_array(array.children[i])
    drop_array(array.dictionary)
    free(array.children)
    free(array.buffers)
    # After the interpreter has ended, the owner of the memory is gone already.
    if array.private_data != NULL and Py_IsInitialized():
        with gil:
            Py_DECREF(<object> <PyObject*> array.private_data)
    array.private_data = NULL
    array.release = NULL


cdef void drop_array(ArrowArray* array) noexcept nogil:
    if array != NULL:
        if array.release != NULL:
            array.release(array)
        free(array)


cdef int fill_array(ArrowArray* array, object node) except -1:
    """Fill an ArrowArray from an ArrayNode, with its children and dictionary. If this fails, release the ArrowArray and raise."""
    cdef int64_t i
    cdef tuple buffers = node.buffers
    memset(array, 0, sizeof(ArrowArray))
    array.release = release_array
    try:
        array.length = node.length
        array.null_count = node.null_count
        if buffers:
            array.buffers = <const void**> zeroed_memory(len(buffers) * sizeof(void*))
            array.n_buffers = len(buffers)
            for i in range(array.n_buffers):
                if buffers[i] is not None:
                    array.buffers[i] = cnp.PyArray_DATA(buffers[i])
            Py_INCREF(buffers)
            array.private_data = <void*> <PyObject*> buffers
        if node.children:
            array.children = <ArrowArray**> zeroed_memory(len(node.children) * sizeof(ArrowArray*))
            array.n_children = len(node.children)
            for i in range(array.n_children):
                array.children[i] = <ArrowArray*> zeroed_memory(sizeof(ArrowArray))
                fill_array(array.children[i], node.children[i])
        if node.dictionary is not None:
            array.dictionary = <ArrowArray*> zeroed_memory(sizeof(ArrowArray))
            fill_array(array.dictionary, node.dictionary)
    except BaseException:
        release_array(array)
        raise
    return 0


# ---- stream

cdef class StreamState:
    """An exported stream's state: its schema, the remaining batches, and the last error."""

    cdef object schema      # FieldNode
    cdef object batches     # iterator that yields ArrayNodes
    cdef object waiting     # the next ArrayNode, or None if the iterator must be asked
    cdef bint is_broken     # whether the iterator has failed. The stream then never ends
    cdef bytes error        # the last failed call's message, or None

    cdef int fail(self, object error) noexcept:
        self.error = (str(error) or type(error).__name__).encode(errors="replace")
        return ENOMEM if isinstance(error, MemoryError) else EIO


cdef int stream_schema(ArrowArrayStream* stream, ArrowSchema* out) noexcept with gil:
    cdef StreamState state = <StreamState> stream.private_data
    try:
        fill_schema(out, state.schema)
    except Exception as error:  # an exception must not pass through the consumer's frames
        return state.fail(error)
    return 0


cdef int stream_next(ArrowArrayStream* stream, ArrowArray* out) noexcept with gil:
    cdef StreamState state = <StreamState> stream.private_data
    if state.is_broken:
        return EIO
    if state.waiting is None:
        try:
            state.waiting = next(state.batches, None)
        except BaseException as error:  # an interrupt too: the consumer must not treat the array as filled
            state.is_broken = True
            return state.fail(error)
    if state.waiting is None:
        memset(out, 0, sizeof(ArrowArray))  # a released array means the end of the stream
        return 0
    try:
        fill_array(out, state.waiting)
    except BaseException as error:  # an exception must not pass through the consumer's frames
        return state.fail(error)
    state.waiting = None
    return 0


cdef const char* stream_error(ArrowArrayStream* stream) noexcept with gil:
    cdef StreamState state = <StreamState> stream.private_data
    if state.error is None:
        return NULL
    return state.error


cdef void release_stream(ArrowArrayStream* stream) noexcept nogil:
    if stream.private_data != NULL and Py_IsInitialized():
        with gil:
            Py_DECREF(<object> <PyObject*> stream.private_data)
    stream.private_data = NULL
    stream.release = NULL


# ---- capsules

cdef void schema_destructor(object capsule) noexcept:
    drop_schema(<ArrowSchema*> PyCapsule_GetPointer(capsule, "arrow_schema"))


cdef void array_destructor(object capsule) noexcept:
    drop_array(<ArrowArray*> PyCapsule_GetPointer(capsule, "arrow_array"))


cdef void stream_destructor(object capsule) noexcept:
    cdef ArrowArrayStream* stream = <ArrowArrayStream*> PyCapsule_GetPointer(capsule, "arrow_array_stream")
    if stream.release != NULL:
        stream.release(stream)
    free(stream)


def schema_capsule(node):
    """Return a FieldNode as a capsule "arrow_schema"."""
    cdef ArrowSchema* schema = <ArrowSchema*> zeroed_memory(sizeof(ArrowSchema))
    try:
        fill_schema(schema, node)
        return PyCapsule_New(schema, "arrow_schema", schema_destructor)
    except BaseException:
        drop_schema(schema)
        raise


def array_capsule(node):
    """Return an ArrayNode as a capsule "arrow_array". The node's NumPy arrays live until the consumer releases the array."""
    cdef ArrowArray* array = <ArrowArray*> zeroed_memory(sizeof(ArrowArray))
    try:
        fill_array(array, node)
        return PyCapsule_New(array, "arrow_array", array_destructor)
    except BaseException:
        drop_array(array)
        raise


def stream_capsule(schema, batches):
    """Return a FieldNode and an iterable of ArrayNodes as a capsule "arrow_array_stream".

    Each of the consumer's calls takes one ArrayNode.

    Raises:
        SchemaError: the C data interface cannot represent a name. The error is raised here, because the consumer would otherwise
            report it as its own error.
    """
    cdef StreamState state = StreamState()
    cdef ArrowArrayStream* stream
    check_schema(schema)
    stream = <ArrowArrayStream*> zeroed_memory(sizeof(ArrowArrayStream))
    state.schema = schema
    state.batches = iter(batches)
    stream.get_schema = stream_schema
    stream.get_next = stream_next
    stream.get_last_error = stream_error
    stream.release = release_stream
    Py_INCREF(state)
    stream.private_data = <void*> <PyObject*> state
    try:
        return PyCapsule_New(stream, "arrow_array_stream", stream_destructor)
    except BaseException:
        release_stream(stream)
        free(stream)
        raise
