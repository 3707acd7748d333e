"""VaultTokens: the token of a client for Vault and OpenBao, from a login if one is configured, and its renewal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fastpq.encryption.keys.kms import DEFAULT_KEY_ACCESS_TOKEN, HiddenText, KmsConnectionConfig, read_secret
from fastpq.encryption.tracebacks import KeyHolder, hides_arguments
from fastpq.errors import SchemaError

OPTIONS = ("auth", "auth_mount_point", "role", "jwt_file", "renew")
METHODS = ("token", "approle", "kubernetes")
KUBERNETES_JWT = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # where Kubernetes puts a pod's own token
RENEWAL_SHARE = 0.5         # part of a token's life after which it is renewed
LOGIN_SHARE = 0.9           # part of a token's life after which there is a new login
FEWEST_SECONDS = 10.0       # time between two logins because of refusals, and between two failed renewals


class _Lease(NamedTuple):
    """How long a token is valid, in seconds of time.monotonic.

    Attributes:
        start: when it was granted.
        seconds: its life. Infinite for a token without an end.
        is_renewable: whether it can be prolonged.
    """

    start: float
    seconds: float
    is_renewable: bool

    @classmethod
    def of(cls, grant: Mapping[str, Any], name: str) -> _Lease:
        """Return the lease in a service's answer. Its member ``name`` has the life in seconds, and 0 means without an end."""
        seconds = grant.get(name)
        life = float(seconds) if isinstance(seconds, int | float) and seconds > 0 else float("inf")
        return cls(time.monotonic(), life, grant.get("renewable") is True)

    @property
    def age(self) -> float:
        return time.monotonic() - self.start


class VaultTokens(KeyHolder):
    """Gives a client of hvac its token before each call.

    Args:
        client: hvac's client.
        config: the token, or the SecretID for AppRole.
        options: the members of custom_kms_conf that ``OPTIONS`` names.
        refusal: makes the error for an exception. It takes what failed, the exception, and texts that the message must not show.

    Raises:
        SchemaError: an option is unknown, is missing, or contradicts another.
    """

    def __init__(
        self,
        client: Any,
        config: KmsConnectionConfig,
        options: Mapping[str, str],
        errors: tuple[type[Exception], ...],
        refusal: Callable[..., Exception],
    ) -> None:
        self._client, self._config, self._errors, self._refusal = client, config, errors, refusal
        self._method = options.get("auth", "token")
        if self._method not in METHODS:
            raise SchemaError(f"custom_kms_conf['auth'] can be {', '.join(METHODS)}")
        self._role, self._jwt_file = options.get("role"), options.get("jwt_file", KUBERNETES_JWT)
        self._mount_point = options.get("auth_mount_point", self._method)
        surplus = [name for name in ("role", "auth_mount_point") if self._method == "token" and name in options]
        surplus += [name for name in ("jwt_file",) if self._method != "kubernetes" and name in options]
        if surplus:
            raise SchemaError(f"custom_kms_conf[{surplus[0]!r}] does not go with auth={self._method!r}")
        if self._method != "token" and self._role is None:
            what = "the RoleID" if self._method == "approle" else "the name of the role"
            raise SchemaError(f"custom_kms_conf['role'] is missing: {what}")
        if options.get("renew", "false") not in ("true", "false"):
            raise SchemaError("custom_kms_conf['renew'] can be true or false")
        self._renews = self._method != "token" or options.get("renew") == "true"
        self._lock = threading.Lock()
        self._lease: _Lease | None = None
        self._next_renewal = 0.0

    @hides_arguments
    def prepare(self) -> str:
        """Give the client a token that is valid, and return it. It is renewed if half of its life is over.

        Raises:
            KeyAccessError: the login failed.
        """
        if not self._renews:
            self._set_given_token()
            return HiddenText(self._client.token)
        with self._lock:
            lease = self._lease
            if lease is None or (lease.age >= LOGIN_SHARE * lease.seconds and self._method != "token"):
                self._log_in()
            elif lease.is_renewable and lease.age >= RENEWAL_SHARE * lease.seconds and time.monotonic() >= self._next_renewal:
                self._renew(lease)
            return HiddenText(self._client.token)

    @hides_arguments
    def log_in_again(self, token: str) -> bool:
        """Log in once more, because the service refused a call. Return whether there is a new token.

        A token that is only seconds old is not replaced: the service refuses the key, and not the token.

        Args:
            token: the token that the call had.

        Raises:
            KeyAccessError: the login failed.
        """
        with self._lock:
            if self._method == "token" or self._lease is None:
                return False
            if self._client.token != token:     # another thread has logged in
                return True
            if self._lease.age < FEWEST_SECONDS:
                return False
            self._log_in()
            return True

    def secrets(self) -> tuple[str, ...]:
        """Return texts that no message may show."""
        return str(self._client.token), str(self._config.key_access_token)

    def _set_given_token(self) -> None:
        token = self._config.key_access_token
        if token != DEFAULT_KEY_ACCESS_TOKEN:
            self._client.token = str(token)

    def _log_in(self) -> None:
        auth, role, mount_point = self._client.auth, self._role, self._mount_point
        secret = ""
        try:
            if self._method == "token":
                self._set_given_token()
                self._lease = _Lease.of(_member(auth.token.lookup_self(), "data"), "ttl")
                return
            if self._method == "approle":
                secret = self._config.key_access_token
                secret_id = None if secret == DEFAULT_KEY_ACCESS_TOKEN else str(secret)
                answer = auth.approle.login(role, secret_id=secret_id, mount_point=mount_point)
            else:
                secret = read_secret(self._jwt_file)
                answer = auth.kubernetes.login(role, str(secret), mount_point=mount_point)
        except self._errors as error:
            raise self._refusal(f"log in by {self._method}", error, *self.secrets(), str(secret)) from error
        self._lease = _Lease.of(_member(answer, "auth"), "lease_duration")

    def _renew(self, lease: _Lease) -> None:
        """Renew the token. If that fails, it is used until its end, and then there is a new login."""
        try:
            renewed = _Lease.of(_member(self._client.auth.token.renew_self(), "auth"), "lease_duration")
        except self._errors:
            self._next_renewal = time.monotonic() + FEWEST_SECONDS
            return
        # near its greatest age, the service grants less and less time
        is_near_end = renewed.seconds < RENEWAL_SHARE * lease.seconds
        self._lease = renewed._replace(is_renewable=not is_near_end)


def _member(answer: Any, name: str) -> Mapping[str, Any]:
    member = answer.get(name) if isinstance(answer, dict) else None
    return member if isinstance(member, dict) else {}
