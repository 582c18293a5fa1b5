import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;

/** Mode {@code rpc-server}: every request goes back as it is. */
final class RpcServer implements FragmentHandler
{
    /** The length of the request that ends the server. */
    private static final int END = 1;

    private final ExclusivePublication replies;
    private long served;
    private boolean hasEnded;

    private RpcServer(final ExclusivePublication replies)
    {
        this.replies = replies;
    }

    static void run(final Options options) throws InterruptedException
    {
        try (Client client = new Client(options))
        {
            final Subscription requests = client.subscription(options.stream);
            final RpcServer server = new RpcServer(client.publication(options.replyStream));
            final Control control = Control.ready();
            while (!server.hasEnded && !control.isClosed())
            {
                if (requests.poll(server, options.batch) == 0)
                {
                    Thread.onSpinWait();
                }
            }
            System.out.printf("{\"messages\": %d}%n", server.served);
        }
    }

    public void onFragment(final DirectBuffer buffer, final int offset, final int length, final Header header)
    {
        if (length == END)
        {
            hasEnded = true;
            return;
        }
        Client.offer(replies, buffer, offset, length);
        served++;
    }
}
