import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Standard input and output: the peer says that it is ready, hears that it may go, and ends when nobody listens.
 */
final class Control
{
    private final CountDownLatch heard = new CountDownLatch(1);
    private final CountDownLatch closed = new CountDownLatch(1);
    private volatile boolean isGoing;

    private Control()
    {
        final Thread listener = new Thread(this::listen, "standard input");
        listener.setDaemon(true);
        listener.start();
    }

    /** Says {@code ready}, and returns when {@code go} has come. */
    static Control ready() throws InterruptedException
    {
        System.out.println("ready");
        final Control control = new Control();
        if (!control.heard.await(Wait.LIMIT, TimeUnit.SECONDS))
        {
            throw new IllegalStateException("nobody has said go");
        }
        if (!control.isGoing)
        {
            throw new IllegalStateException("standard input was closed before it said go");
        }
        return control;
    }

    /** Whether standard input has been closed. */
    boolean isClosed()
    {
        return closed.getCount() == 0;
    }

    /** Waits until standard input is closed, but no longer than this. */
    void linger(final long milliseconds) throws InterruptedException
    {
        closed.await(milliseconds, TimeUnit.MILLISECONDS);
    }

    private void listen()
    {
        try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in)))
        {
            String line;
            while ((line = input.readLine()) != null)
            {
                if (line.equals("go"))
                {
                    isGoing = true;
                    heard.countDown();
                }
            }
        }
        catch (final IOException ignore)
        {
            // as good as closed
        }
        closed.countDown();
        heard.countDown();
    }
}
