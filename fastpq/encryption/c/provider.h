/* OpenSSL's library context: the default one, or one that has only a FIPS provider. */
#ifndef FASTPQ_PROVIDER_H
#define FASTPQ_PROVIDER_H

#include <openssl/bio.h>
#include <openssl/conf.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/provider.h>

#define FASTPQ_FIPS_ONLY "fips=yes" /* a query for properties: matches exactly the algorithms of a FIPS provider */

/* Returns a new context whose algorithms come from a FIPS provider, or NULL with OpenSSL's error queue filled if there is none.
 * OpenSSL's configuration file says where the provider's module is, and contains its checksum. */
static OSSL_LIB_CTX *open_fips_library(void) {
    OSSL_LIB_CTX *library = OSSL_LIB_CTX_new();
    char *path = CONF_get1_default_config_file();
    if (library == NULL || path == NULL) {
        OSSL_LIB_CTX_free(library);
        OPENSSL_free(path);
        return NULL;
    }
    (void)OSSL_LIB_CTX_load_config(library, path); /* may fail: some systems build the checksum into the module, without a file */
    OPENSSL_free(path);
    if (OSSL_PROVIDER_load(library, "fips") == NULL || EVP_set_default_properties(library, FASTPQ_FIPS_ONLY) != 1) {
        OSSL_LIB_CTX_free(library);
        return NULL;
    }
    return library;
}

/* Writes name and version of a cipher's provider to text. Returns 1, or 0 if the provider reports neither. */
static int describe_provider(const EVP_CIPHER *cipher, char *text, size_t size) {
    const OSSL_PROVIDER *provider = EVP_CIPHER_get0_provider(cipher);
    char *name = NULL, *version = NULL;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_ptr(OSSL_PROV_PARAM_NAME, &name, 0),
        OSSL_PARAM_construct_utf8_ptr(OSSL_PROV_PARAM_VERSION, &version, 0),
        OSSL_PARAM_construct_end(),
    };
    if (provider == NULL || OSSL_PROVIDER_get_params(provider, params) != 1 || name == NULL || version == NULL) return 0;
    return BIO_snprintf(text, size, "%s %s", name, version) > 0;
}

/* Derives a key from a passphrase by PBKDF2 with HMAC-SHA-256, within NIST SP 800-132's limits. Returns 1 if it succeeds. */
static int derive_pbkdf2(OSSL_LIB_CTX *library, const char *properties, const unsigned char *passphrase, size_t passphrase_size,
                         const unsigned char *salt, size_t salt_size, unsigned int iterations, unsigned char *out, size_t size) {
    int within_bounds = 0, is_done; /* OSSL_KDF_PARAM_PKCS5: 0 lets the provider check salt, iterations and size */
    EVP_KDF *kdf = EVP_KDF_fetch(library, "PBKDF2", properties);
    EVP_KDF_CTX *context = kdf == NULL ? NULL : EVP_KDF_CTX_new(kdf);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PASSWORD, (void *)passphrase, passphrase_size),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)salt, salt_size),
        OSSL_PARAM_construct_uint(OSSL_KDF_PARAM_ITER, &iterations),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"SHA256", 0),
        OSSL_PARAM_construct_int(OSSL_KDF_PARAM_PKCS5, &within_bounds),
        OSSL_PARAM_construct_end(),
    };
    is_done = context != NULL && EVP_KDF_derive(context, out, size, params) == 1;
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
    return is_done;
}

#endif
