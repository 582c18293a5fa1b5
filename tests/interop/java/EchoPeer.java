import io.aeron.Aeron;
import io.aeron.samples.echo.ProvisioningServerMain;
import io.aeron.samples.echo.api.EchoMonitorMBean;
import io.aeron.samples.echo.api.ProvisioningConstants;
import io.aeron.samples.echo.api.ProvisioningMBean;

import javax.management.JMX;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import java.lang.management.ManagementFactory;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * Aeron's echo samples in one process: the server, and a client that asks it for an echo from one channel to another.
 * Aeron's own client asks over a fixed port, for fixed channels.
 * <p>
 * Arguments: channel and stream id to receive from, channel and stream id to send to, number of fragments after which
 * it ends. The Aeron directory is a system property, for the server.
 */
public final class EchoPeer
{
    private static final long ID = 1;
    private static final long TIMEOUT_NS = TimeUnit.SECONDS.toNanos(60);

    private final long deadlineNs = System.nanoTime() + TIMEOUT_NS;

    public static void main(final String[] args) throws Exception
    {
        final EchoPeer peer = new EchoPeer();
        final MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
        try (ProvisioningServerMain server = ProvisioningServerMain.launch(new Aeron.Context()))
        {
            final ObjectName name = new ObjectName(ProvisioningConstants.IO_AERON_TYPE_PROVISIONING_NAME_TESTING);
            peer.await(() -> beans.isRegistered(name));
            JMX.newMBeanProxy(beans, name, ProvisioningMBean.class).createEchoPair(
                ID, args[0], Integer.parseInt(args[1]), args[2], Integer.parseInt(args[3]));

            final EchoMonitorMBean echo = JMX.newMBeanProxy(
                beans, new ObjectName(ProvisioningConstants.echoPairObjectName(ID)), EchoMonitorMBean.class);
            peer.await(() -> echo.getFragmentCount() >= Long.parseLong(args[4]));
            System.out.println("echoed " + echo.getFragmentCount() + " fragments, " + echo.getByteCount() + " bytes");
        }
    }

    private void await(final BooleanSupplier condition) throws InterruptedException
    {
        while (!condition.getAsBoolean())
        {
            if (System.nanoTime() > deadlineNs)
            {
                throw new IllegalStateException("what it waits for has not come");
            }
            Thread.sleep(1);
        }
    }
}
