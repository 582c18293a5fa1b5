import java.util.concurrent.TimeUnit;

/** The command line. */
final class Options
{
    /** A channel and a stream of it. */
    record Stream(String channel, int id)
    {
    }

    String mode;
    String aeronDir;
    /** What messages are sent on. */
    Stream stream = new Stream("aeron:ipc", 1001);
    /** What replies come on. */
    Stream replyStream = new Stream("aeron:ipc", 1002);
    int size = 32;
    /** Messages of a batch, and fragments that one poll may give. */
    int batch = 1000;
    /** Whether ticks are written and read; if not, messages are only counted. */
    boolean ticks = true;
    /** Messages a second; 0: as many as go. */
    long rate = 0;
    Extent extent = new Extent(0, TimeUnit.SECONDS.toNanos(1));

    private Options()
    {
    }

    static Options parse(final String[] arguments)
    {
        if (arguments.length % 2 == 0)
        {
            throw new IllegalArgumentException("a mode is needed, and a value for every option");
        }
        final Options options = new Options();
        options.mode = arguments[0];
        for (int i = 1; i < arguments.length; i += 2)
        {
            final String value = arguments[i + 1];
            switch (arguments[i])
            {
                case "--aeron-dir" -> options.aeronDir = value;
                case "--channel" -> options.stream = new Stream(value, options.stream.id);
                case "--stream" -> options.stream = new Stream(options.stream.channel, Integer.parseInt(value));
                case "--reply-channel" -> options.replyStream = new Stream(value, options.replyStream.id);
                case "--reply-stream" ->
                    options.replyStream = new Stream(options.replyStream.channel, Integer.parseInt(value));
                case "--size" -> options.size = atLeast(Tick.LENGTH, value);
                case "--seconds" ->
                    options.extent = new Extent(options.extent.messages(), nanoseconds(value));
                case "--messages" ->
                    options.extent = new Extent(atLeast(1, value), options.extent.nanoseconds());
                case "--batch" -> options.batch = atLeast(1, value);
                case "--tick" -> options.ticks = ticks(value);
                case "--rate" -> options.rate = atLeast(0, value);
                default -> throw new IllegalArgumentException("there is no option '" + arguments[i] + "'");
            }
        }
        return options;
    }

    private static int atLeast(final int least, final String value)
    {
        final int number = Integer.parseInt(value);
        if (number < least)
        {
            throw new IllegalArgumentException(value + " is less than " + least);
        }
        return number;
    }

    private static long nanoseconds(final String value)
    {
        final double seconds = Double.parseDouble(value);
        if (!(seconds >= 0))
        {
            throw new IllegalArgumentException(value + " is not a number of seconds");
        }
        return Math.round(seconds * 1e9);
    }

    private static boolean ticks(final String value)
    {
        return switch (value)
        {
            case "full" -> true;
            case "none" -> false;
            default -> throw new IllegalArgumentException("ticks are 'full' or 'none'");
        };
    }
}
