import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.parquet.crypto.keytools.KeyToolkit;

/**
 * Runs the other programs of this folder in one JVM, which takes seconds to start.
 *
 * A request on standard input is a number of words, and each word as its length and its bytes: the program and its arguments.
 * The answer on standard output is a byte, 0 or 1 for a failure, then the length and the bytes of the text that the program
 * printed, or of the exception.
 */
public final class Server {
    public static void main(String[] arguments) throws Exception {
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream answers = new DataOutputStream(new BufferedOutputStream(System.out));
        System.setOut(System.err);
        while (true) {
            String[] words;
            try {
                words = new String[requests.readInt()];
            } catch (EOFException end) {
                return;
            }
            for (int i = 0; i < words.length; i++) {
                words[i] = new String(requests.readNBytes(requests.readInt()), StandardCharsets.UTF_8);
            }
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            boolean failed = run(words, new PrintStream(printed, true, StandardCharsets.UTF_8));
            answers.writeBoolean(failed);
            answers.writeInt(printed.size());
            printed.writeTo(answers);
            answers.flush();
        }
    }

    /** Returns whether it failed. */
    private static boolean run(String[] words, PrintStream out) {
        KeyToolkit.removeCacheEntriesForAllTokens(); // keys of the request before
        System.setOut(out);
        try {
            String[] arguments = Arrays.copyOfRange(words, 1, words.length);
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return false;
        } catch (Throwable failure) {
            failure.printStackTrace(out);
            return true;
        } finally {
            System.setOut(System.err);
        }
    }
}
