//! Spinning for something that must come.

use std::hint::spin_loop;
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;

/// What takes longer than this never comes.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Spins between two looks at the clock.
const SPINS: u32 = 4096;

/// A wait that has not had to spin costs nothing.
pub struct Wait {
    what: &'static str,
    spins: u32,
    end: Option<Instant>,
}

impl Wait {
    pub fn new(what: &'static str) -> Self {
        Self {
            what,
            spins: 0,
            end: None,
        }
    }

    /// One turn of a loop that has found nothing.
    #[inline]
    pub fn spin(&mut self) -> Result<()> {
        spin_loop();
        self.spins += 1;
        if self.spins.is_multiple_of(SPINS) {
            self.check()
        } else {
            Ok(())
        }
    }

    /// One turn of a loop that may leave the processor to others.
    pub fn pause(&mut self) -> Result<()> {
        thread::sleep(Duration::from_micros(100));
        self.check()
    }

    #[cold]
    fn check(&mut self) -> Result<()> {
        let now = Instant::now();
        if now >= *self.end.get_or_insert(now + LIMIT) {
            return Err(format!("waited {} s for {}", LIMIT.as_secs(), self.what).into());
        }
        Ok(())
    }
}
