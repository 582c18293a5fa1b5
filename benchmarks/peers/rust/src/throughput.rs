//! Mode `throughput`: a batch is sent, then received, on one thread.

use std::time::Instant;

use crate::Result;
use crate::client::{Link, offer};
use crate::control::Control;
use crate::options::{Extent, Options};
use crate::pool::Pool;
use crate::tick::Tally;
use crate::wait::Wait;

pub fn run(options: &Options) -> Result<()> {
    let mut pool = Pool::new(options.size, options.ticks).prepared();
    let link = Link::connect(options, options.own_stream())?;
    let _control = Control::ready()?;

    exchange(&link, &mut pool, options, Extent::WARM_UP)?;
    let start = Instant::now();
    let tally = exchange(&link, &mut pool, options, options.extent())?;
    let seconds = start.elapsed().as_secs_f64();
    println!(r#"{{{}, "seconds": {seconds}}}"#, tally.json());
    Ok(())
}

fn exchange(link: &Link, pool: &mut Pool, options: &Options, extent: Extent) -> Result<Tally> {
    let mut tally = Tally::new(options.ticks);
    let mut sent = 0;
    let start = Instant::now();
    loop {
        let end = sent + options.batch.min(extent.left(sent, start.elapsed()));
        if end == sent {
            return Ok(tally);
        }
        while sent < end {
            offer(&link.publication, pool.message(sent), || {
                drain(link, options, &mut tally).map(drop)
            })?;
            sent += 1;
        }
        let mut wait = Wait::new("messages to arrive");
        while tally.messages < sent {
            if drain(link, options, &mut tally)? == 0 {
                wait.spin()?;
            }
        }
    }
}

fn drain(link: &Link, options: &Options, tally: &mut Tally) -> Result<i32> {
    Ok(link
        .subscription
        .poll_fn(|message, _| tally.take(message), options.batch as usize)?)
}
