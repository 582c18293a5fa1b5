//! Modes `market-publisher` and `market-consumer`: a feed of ticks that say when they were sent.

use std::hint::spin_loop;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::Result;
use crate::client::{Client, offer, wait_until};
use crate::control::Control;
use crate::histogram::Histogram;
use crate::options::Options;
use crate::pool::Pool;
use crate::tick::{self, Tally};
use crate::wait::{LIMIT, Wait};

/// Bytes of a message: the tick, the time of sending, and random ones.
const SIZE: usize = 64;
/// Where the time of sending is.
const SENT: std::ops::Range<usize> = tick::LENGTH..tick::LENGTH + 8;
/// One message in so many has its delay measured.
const SAMPLING: u64 = 64;
/// A feed that is over and silent for so long has been received.
const SILENCE: Duration = Duration::from_millis(500);
/// How long a feed stays connected after its last message.
const LINGER: Duration = Duration::from_secs(1);

pub fn publish(options: &Options) -> Result<()> {
    let mut pool = Pool::new(SIZE, true);
    let client = Client::connect(options)?;
    let publication = client.publication(options.own_stream())?;
    wait_until("a consumer", || publication.is_connected())?;
    let control = Control::ready()?;

    let extent = options.extent();
    let nanoseconds_apart = if options.rate == 0 {
        0.0
    } else {
        1e9 / options.rate as f64
    };
    let start = realtime();
    let mut elapsed = 0;
    let (mut messages, mut refusals) = (0, 0_u64);
    while extent.left(messages, Duration::from_nanos(elapsed)) > 0 {
        // One reading of the clock serves the pace, the end and the message: it costs as much as sending one.
        let now = realtime();
        elapsed = now.saturating_sub(start);
        if elapsed < (messages as f64 * nanoseconds_apart) as u64 {
            spin_loop();
            continue;
        }
        let message = pool.message(messages);
        message[SENT].copy_from_slice(&now.to_le_bytes());
        offer(&publication, message, || {
            refusals += 1;
            Ok(())
        })?;
        messages += 1;
    }
    let seconds = Duration::from_nanos(elapsed).as_secs_f64();
    println!(r#"{{"messages": {messages}, "seconds": {seconds}, "backpressured": {refusals}}}"#);
    control.linger(LINGER);
    Ok(())
}

pub fn consume(options: &Options) -> Result<()> {
    let client = Client::connect(options)?;
    let subscription = client.subscription(options.own_stream())?;
    let _control = Control::ready()?;

    let mut feed = Feed::new(options.ticks);
    let mut wait = Wait::new("the first message");
    while subscription.poll_fn(|message, _| feed.take(message), options.batch as usize)? == 0 {
        wait.spin()?;
    }
    let first = Instant::now();
    let extent = options.extent();
    let mut last = first;
    loop {
        let polled = subscription.poll_fn(|message, _| feed.take(message), options.batch as usize)?;
        let now = Instant::now();
        if polled > 0 {
            last = now;
        } else if subscription.image_count()? == 0
            || extent.left(feed.tally.messages, now - first) == 0 && now - last >= SILENCE
        {
            break;
        } else {
            spin_loop();
        }
        if now - first > options.seconds() + LIMIT {
            return Err("the feed does not end".into());
        }
    }
    let seconds = (last - first).as_secs_f64();
    println!(
        r#"{{{}, "seconds": {seconds}, "gaps": {}, {}}}"#,
        feed.tally.json(),
        feed.gaps,
        feed.delays.json()
    );
    Ok(())
}

/// What a consumer has seen of a feed.
struct Feed {
    tally: Tally,
    next: u64,
    gaps: u64,
    delays: Histogram,
}

impl Feed {
    fn new(ticks: bool) -> Self {
        Self {
            tally: Tally::new(ticks),
            next: 0,
            gaps: 0,
            delays: Histogram::new(),
        }
    }

    #[inline]
    fn take(&mut self, message: &[u8]) {
        self.tally.take(message);
        let sequence = tick::sequence(message);
        self.gaps += u64::from(sequence != self.next);
        self.next = sequence + 1;
        if sequence.is_multiple_of(SAMPLING) {
            // Never negative but by a step of the clock.
            self.delays
                .record(realtime().saturating_sub(u64::from_le_bytes(tick::field(message, SENT.start))));
        }
    }
}

/// Nanoseconds of CLOCK_REALTIME, which all processes of a machine share.
#[inline]
fn realtime() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is past 1970")
        .as_nanos() as u64
}
