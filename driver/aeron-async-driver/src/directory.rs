//! Who serves a directory.
//!
//! A driver of any kind shows that it lives by the heartbeat in its CnC file, which is believed for the driver timeout. A
//! driver of ours also holds a lock on a file inside the directory, so that its death, even by SIGKILL, is known at once.
//! A file in the directory belongs to one run of the driver, as the directory is recreated at each start.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusteron_media_driver::bindings::{AERON_CACHE_LINE_LENGTH, aeron_cnc_metadata_t, aeron_rb_descriptor_t};

pub const LOCK_FILE: &str = "aeron-async.lock";
const CNC_FILE: &str = "cnc.dat";
const OTHER_FILES: [&str; 3] = ["loss-report.dat", "publications", "images"];

/// How long a CnC file may be there with no version in it: the driver that creates it is given this long to fill it in.
const INITIALISATION_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, PartialEq)]
pub enum Occupant {
    Nobody,
    DeadDriver,
    LiveDriver,
    /// A file that no driver has made.
    Stranger(PathBuf),
}

/// The mark of a live driver of ours in its directory.
pub struct ServedDirectory {
    _lock: File,
}

impl ServedDirectory {
    /// To be called when the driver is ready: those who wait for it look at the lock.
    pub fn mark(dir: &Path) -> io::Result<Self> {
        let lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(dir.join(LOCK_FILE))?;
        lock.lock()?;
        Ok(Self { _lock: lock })
    }
}

pub fn occupant(dir: &Path, driver_timeout: Duration) -> io::Result<Occupant> {
    let mut has_cnc = false;
    let mut is_empty = true;
    let mut stranger = None;
    match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Occupant::Nobody),
        Err(error) => return Err(error),
        Ok(entries) => {
            for entry in entries {
                let name = entry?.file_name();
                is_empty = false;
                if name == CNC_FILE {
                    has_cnc = true;
                } else if name != LOCK_FILE && !OTHER_FILES.iter().any(|known| name == *known) {
                    stranger = Some(PathBuf::from(name));
                }
            }
        }
    }
    if !has_cnc {
        return Ok(match stranger {
            Some(file) => Occupant::Stranger(file),
            None if is_empty => Occupant::Nobody,
            None => Occupant::DeadDriver,
        });
    }
    let lives = match is_locked(&dir.join(LOCK_FILE))? {
        Some(locked) => locked,
        None => has_heartbeat(&dir.join(CNC_FILE), driver_timeout)?,
    };
    Ok(if lives {
        Occupant::LiveDriver
    } else {
        Occupant::DeadDriver
    })
}

fn is_locked(path: &Path) -> io::Result<Option<bool>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Some(false)),
        Err(TryLockError::WouldBlock) => Ok(Some(true)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn has_heartbeat(cnc: &Path, driver_timeout: Duration) -> io::Result<bool> {
    let file = match File::open(cnc) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    let deadline = Instant::now() + INITIALISATION_TIMEOUT;
    while read_i32(&file, offset_of!(aeron_cnc_metadata_t, cnc_version) as u64)? == Some(0) {
        if Instant::now() > deadline {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(10));
    }
    let Some(heartbeat) = read_heartbeat(&file)? else {
        return Ok(false);
    };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis() as i64;
    Ok(now.saturating_sub(heartbeat) <= driver_timeout.as_millis() as i64)
}

/// The time of the driver's last heartbeat in milliseconds since the epoch; None where the file is too short to have one.
fn read_heartbeat(cnc: &File) -> io::Result<Option<i64>> {
    let Some(length) = read_i32(cnc, offset_of!(aeron_cnc_metadata_t, to_driver_buffer_length) as u64)? else {
        return Ok(None);
    };
    // The to-driver buffer follows the metadata, and ends with its trailer.
    let Some(trailer) = u64::try_from(length)
        .ok()
        .and_then(|length| length.checked_sub(size_of::<aeron_rb_descriptor_t>() as u64))
        .map(|offset| offset + u64::from(AERON_CACHE_LINE_LENGTH) * 2)
    else {
        return Ok(None);
    };
    read(
        cnc,
        trailer + offset_of!(aeron_rb_descriptor_t, consumer_heartbeat) as u64,
    )
    .map(|bytes| bytes.map(i64::from_le_bytes))
}

fn read_i32(file: &File, offset: u64) -> io::Result<Option<i32>> {
    read(file, offset).map(|bytes| bytes.map(i32::from_le_bytes))
}

fn read<const N: usize>(file: &File, offset: u64) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    match file.read_exact_at(&mut bytes, offset) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        result => result.map(|()| Some(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn now_ms() -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
    }

    fn directory_with(files: &[(&str, &[u8])]) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(dir.path().join(name), content).unwrap();
        }
        dir
    }

    fn cnc(heartbeat: i64) -> Vec<u8> {
        let to_driver_length = 1024 + size_of::<aeron_rb_descriptor_t>();
        let mut bytes = vec![0; 128 + to_driver_length];
        bytes[0..4].copy_from_slice(&512i32.to_le_bytes());
        bytes[4..8].copy_from_slice(&(to_driver_length as i32).to_le_bytes());
        let at = 128 + 1024 + 640;
        bytes[at..at + 8].copy_from_slice(&heartbeat.to_le_bytes());
        bytes
    }

    fn occupant_of(dir: &TempDir) -> Occupant {
        occupant(dir.path(), TIMEOUT).unwrap()
    }

    #[test]
    fn nobody_is_where_there_is_nothing() {
        assert_eq!(
            occupant(Path::new("/no/such/directory"), TIMEOUT).unwrap(),
            Occupant::Nobody
        );
        assert_eq!(occupant_of(&directory_with(&[])), Occupant::Nobody);
    }

    #[test]
    fn a_fresh_heartbeat_is_a_live_driver() {
        assert_eq!(
            occupant_of(&directory_with(&[(CNC_FILE, &cnc(now_ms()))])),
            Occupant::LiveDriver
        );
    }

    #[test]
    fn an_old_heartbeat_and_the_one_of_a_clean_end_are_dead_drivers() {
        for heartbeat in [now_ms() - 11_000, -1, 0] {
            assert_eq!(
                occupant_of(&directory_with(&[(CNC_FILE, &cnc(heartbeat))])),
                Occupant::DeadDriver
            );
        }
    }

    #[test]
    fn a_driver_of_ours_is_dead_as_soon_as_its_lock_is_free() {
        let dir = directory_with(&[(CNC_FILE, &cnc(now_ms()))]);
        let served = ServedDirectory::mark(dir.path()).unwrap();
        assert_eq!(occupant_of(&dir), Occupant::LiveDriver);
        drop(served);
        assert_eq!(occupant_of(&dir), Occupant::DeadDriver);
    }

    #[test]
    fn a_driver_of_ours_lives_while_it_holds_its_lock_whatever_its_heartbeat() {
        let dir = directory_with(&[(CNC_FILE, &cnc(0))]);
        let _served = ServedDirectory::mark(dir.path()).unwrap();
        assert_eq!(occupant_of(&dir), Occupant::LiveDriver);
    }

    #[test]
    fn a_file_that_cannot_be_true_is_a_dead_driver() {
        let mut lying = cnc(now_ms());
        lying[4..8].copy_from_slice(&i32::MAX.to_le_bytes());
        let mut negative = cnc(now_ms());
        negative[4..8].copy_from_slice(&(-1i32).to_le_bytes());
        for content in [vec![], vec![0; 4096], lying, negative] {
            assert_eq!(
                occupant_of(&directory_with(&[(CNC_FILE, &content)])),
                Occupant::DeadDriver
            );
        }
    }

    #[test]
    fn what_a_driver_left_when_it_died_early_is_a_dead_driver() {
        let dir = directory_with(&[]);
        fs::create_dir(dir.path().join("publications")).unwrap();
        assert_eq!(occupant_of(&dir), Occupant::DeadDriver);
    }

    #[test]
    fn a_directory_of_somebody_else_is_known_by_its_files() {
        let dir = directory_with(&[("thesis.tex", b"")]);
        assert_eq!(occupant_of(&dir), Occupant::Stranger("thesis.tex".into()));
    }
}
