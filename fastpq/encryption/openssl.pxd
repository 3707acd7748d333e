"""OpenSSL functions that fastpq calls. They exist in OpenSSL 3.0 and later."""

from libc.stdint cimport uint8_t


cdef extern from "openssl/evp.h" nogil:
    ctypedef struct EVP_CIPHER
    ctypedef struct EVP_CIPHER_CTX
    ctypedef struct OSSL_LIB_CTX
    ctypedef struct OSSL_PARAM
    int EVP_CTRL_AEAD_GET_TAG
    int EVP_CTRL_AEAD_SET_TAG
    EVP_CIPHER* EVP_CIPHER_fetch(OSSL_LIB_CTX* library, const char* algorithm, const char* properties)
    EVP_CIPHER_CTX* EVP_CIPHER_CTX_new()
    void EVP_CIPHER_free(EVP_CIPHER* cipher)
    int EVP_CIPHER_CTX_get_original_iv(EVP_CIPHER_CTX* context, void* iv, size_t size)
    void EVP_CIPHER_CTX_free(EVP_CIPHER_CTX* context)
    int EVP_CIPHER_CTX_copy(EVP_CIPHER_CTX* out, const EVP_CIPHER_CTX* source)
    int EVP_CIPHER_CTX_ctrl(EVP_CIPHER_CTX* context, int command, int argument, void* pointer)
    int EVP_EncryptInit_ex2(EVP_CIPHER_CTX* context, const EVP_CIPHER* cipher, const uint8_t* key, const uint8_t* iv,
                            const OSSL_PARAM* params)
    int EVP_EncryptUpdate(EVP_CIPHER_CTX* context, uint8_t* out, int* out_size, const uint8_t* data, int size)
    int EVP_EncryptFinal_ex(EVP_CIPHER_CTX* context, uint8_t* out, int* out_size)
    int EVP_DecryptInit_ex2(EVP_CIPHER_CTX* context, const EVP_CIPHER* cipher, const uint8_t* key, const uint8_t* iv,
                            const OSSL_PARAM* params)
    int EVP_DecryptUpdate(EVP_CIPHER_CTX* context, uint8_t* out, int* out_size, const uint8_t* data, int size)
    int EVP_DecryptFinal_ex(EVP_CIPHER_CTX* context, uint8_t* out, int* out_size)

cdef extern from "openssl/crypto.h" nogil:
    int OPENSSL_VERSION
    const char* OpenSSL_version(int what)
    void OPENSSL_cleanse(void* memory, size_t size)
    int CRYPTO_memcmp(const void* one, const void* other, size_t size)

cdef extern from "openssl/err.h" nogil:
    unsigned long ERR_peek_last_error()
    void ERR_clear_error()
    void ERR_error_string_n(unsigned long code, char* text, size_t size)
