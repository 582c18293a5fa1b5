/**
 * A peer of the benchmarks over Aeron's Java client.
 * <p>
 * Modes, options and output are those of every peer: benchmarks/README.md, "Peer programs".
 */
public final class Peer
{
    private Peer()
    {
    }

    public static void main(final String[] arguments)
    {
        try
        {
            run(Options.parse(arguments));
        }
        catch (final Exception failure)
        {
            System.err.println(failure);
            System.exit(1);
        }
    }

    private static void run(final Options options) throws Exception
    {
        switch (options.mode)
        {
            case "pool" -> System.out.printf("{\"sha256\": \"%s\"}%n", Pool.digest(options.size));
            case "latency" -> RoundTrips.run(options, options.stream);
            case "throughput" -> Throughput.run(options);
            case "rpc-server" -> RpcServer.run(options);
            case "rpc-client" -> RoundTrips.run(options, options.replyStream);
            case "market-publisher" -> MarketPublisher.run(options);
            case "market-consumer" -> MarketConsumer.run(options);
            default -> throw new IllegalArgumentException("there is no mode '" + options.mode + "'");
        }
    }
}
