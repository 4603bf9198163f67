package io.github.kproto;

/** An answer of the server that is not a success. */
public final class RefusedException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final int status;

    RefusedException(int status, String problem) {
        super("mockbroker: " + problem + " (" + status + ")");
        this.status = status;
    }

    /** The status of HTTP. */
    public int status() {
        return status;
    }
}
