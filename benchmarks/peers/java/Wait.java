import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Spinning for something that must come. One that has not had to spin costs nothing. */
final class Wait
{
    /** Seconds; what takes longer never comes. */
    static final long LIMIT = 30;

    /** Spins between two looks at the clock. */
    private static final int SPINS = 4096;

    private final String what;
    private int spins;
    private long end;
    private boolean isTimed;

    Wait(final String what)
    {
        this.what = what;
    }

    /** Returns when something is the case, and leaves the processor to others until then. */
    static void until(final String what, final BooleanSupplier isTheCase)
    {
        final Wait wait = new Wait(what);
        while (!isTheCase.getAsBoolean())
        {
            LockSupport.parkNanos(TimeUnit.MICROSECONDS.toNanos(100));
            wait.check();
        }
    }

    /** One turn of a loop that has found nothing. */
    void spin()
    {
        Thread.onSpinWait();
        if (++spins % SPINS == 0)
        {
            check();
        }
    }

    private void check()
    {
        final long now = System.nanoTime();
        if (!isTimed)
        {
            isTimed = true;
            end = now + TimeUnit.SECONDS.toNanos(LIMIT);
        }
        if (now - end >= 0)
        {
            throw new IllegalStateException("waited " + LIMIT + " s for " + what);
        }
    }
}
