package io.fastpq.spark;

import java.io.IOException;

/** An error of fastpq, raised in a Python worker: the name of its class there, and its text. */
public final class FastpqException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** A worker that ended before its answer. */
    static final class Lost extends IOException {
        private static final long serialVersionUID = 1L;

        Lost(String message, Throwable cause) {
            super(message, cause);
        }
    }

    FastpqException(String kind, String message) {
        super(kind + ": " + message);
    }
}
