//! The lease: a file on which every user of the driver holds a shared lock (flock).
//!
//! The kernel takes a lock away when its holder ends, however that happens, so the lease needs no keep-alive and knows
//! nothing of process ids. Once this process gets the lock for itself, nobody uses the driver, and nobody can start to:
//! who wants to join takes the lease first, waits, and finds the driver gone.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

pub const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub struct Lease {
    file: File,
    grace: Duration,
    free_since: Option<Instant>,
}

impl Lease {
    pub fn open(path: &Path, grace: Duration) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Self {
            file,
            grace,
            free_since: None,
        })
    }

    /// Whether nobody has held the lease for as long as the grace period. If so, it stays locked from now on.
    pub fn has_ended(&mut self, now: Instant) -> bool {
        match self.file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                self.free_since = None;
                return false;
            }
            // A lease that cannot be read is nobody's.
            Err(TryLockError::Error(error)) => {
                eprintln!("aeron-async-driver: cannot lock the lease: {error}");
                return true;
            }
        }
        let free_since = *self.free_since.get_or_insert(now);
        let ended = now.duration_since(free_since) >= self.grace;
        if !ended {
            // Unlocking fails for a closed file only.
            let _ = self.file.unlock();
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::NamedTempFile;

    const GRACE: Duration = Duration::from_secs(1);

    fn lease(grace: Duration) -> (NamedTempFile, Lease) {
        let file = NamedTempFile::new().unwrap();
        let lease = Lease::open(file.path(), grace).unwrap();
        (file, lease)
    }

    fn holder(file: &NamedTempFile) -> File {
        let holder = file.reopen().unwrap();
        holder.lock_shared().unwrap();
        holder
    }

    #[test]
    fn a_held_lease_goes_on() {
        let (file, mut lease) = lease(Duration::ZERO);
        let _holder = holder(&file);
        assert!(!lease.has_ended(Instant::now()));
    }

    #[test]
    fn it_goes_on_until_the_last_holder_is_gone() {
        let (file, mut lease) = lease(Duration::ZERO);
        let (first, second) = (holder(&file), holder(&file));
        drop(first);
        assert!(!lease.has_ended(Instant::now()));
        drop(second);
        assert!(lease.has_ended(Instant::now()));
    }

    #[test]
    fn a_free_lease_ends_after_its_grace_period() {
        let (_file, mut lease) = lease(GRACE);
        let start = Instant::now();
        assert!(!lease.has_ended(start));
        assert!(!lease.has_ended(start + GRACE / 2));
        assert!(lease.has_ended(start + GRACE));
    }

    #[test]
    fn it_can_be_taken_up_again_within_the_grace_period() {
        let (file, mut lease) = lease(GRACE);
        let start = Instant::now();
        assert!(!lease.has_ended(start));
        let new_holder = holder(&file);
        assert!(!lease.has_ended(start + GRACE));
        drop(new_holder);
        assert!(!lease.has_ended(start + 2 * GRACE), "the grace period starts anew");
        assert!(lease.has_ended(start + 3 * GRACE));
    }

    #[test]
    fn nobody_can_take_up_a_lease_that_has_ended() {
        let (file, mut lease) = lease(Duration::ZERO);
        assert!(lease.has_ended(Instant::now()));
        assert!(matches!(
            file.reopen().unwrap().try_lock_shared(),
            Err(TryLockError::WouldBlock)
        ));
    }

    #[test]
    fn a_lease_must_exist() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Lease::open(&folder.path().join("lease"), GRACE).is_err());
    }
}
