//! Modes `latency` and `rpc-client`: one message at a time, there and back.

use std::time::{Duration, Instant};

use crate::Result;
use crate::client::{Link, offer};
use crate::control::Control;
use crate::histogram::Histogram;
use crate::options::{Extent, Options, Stream};
use crate::pool::Pool;
use crate::tick::Tally;
use crate::wait::Wait;

/// Sends messages that come back on `returning`: the own stream, or that of a server's replies.
pub fn run(options: &Options, returning: &Stream) -> Result<()> {
    let mut pool = Pool::new(options.size, options.ticks).prepared();
    let link = Link::connect(options, returning)?;
    let _control = Control::ready()?;

    exchange(&link, &mut pool, options, Extent::WARM_UP)?;
    let trips = exchange(&link, &mut pool, options, options.extent())?;
    let seconds = trips.time.as_secs_f64();
    println!(
        r#"{{{}, "seconds": {seconds}, {}}}"#,
        trips.tally.json(),
        trips.durations.json()
    );
    Ok(())
}

struct Trips {
    tally: Tally,
    durations: Histogram,
    time: Duration,
}

fn exchange(link: &Link, pool: &mut Pool, options: &Options, extent: Extent) -> Result<Trips> {
    let mut trips = Trips {
        tally: Tally::new(options.ticks),
        durations: Histogram::new(),
        time: Duration::ZERO,
    };
    let start = Instant::now();
    while extent.left(trips.tally.messages, trips.time) > 0 {
        let sent = Instant::now();
        offer(&link.publication, pool.message(trips.tally.messages), || Ok(()))?;
        let mut wait = Wait::new("a message to come back");
        while link
            .subscription
            .poll_fn(|message, _| trips.tally.take(message), options.batch as usize)?
            == 0
        {
            wait.spin()?;
        }
        let back = Instant::now();
        trips.durations.record((back - sent).as_nanos() as u64);
        trips.time = back - start;
    }
    Ok(trips)
}
