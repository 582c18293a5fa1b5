//! The command line.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;

pub const HELP: &str = "\
The Aeron media driver, supervised.

Usage: aeron-async-driver [OPTIONS]

The driver is configured by the usual AERON_* environment variables. Once it serves its directory, it prints one line of
JSON: pid, aeron_dir, version, aeron_version. It refuses a directory that a live driver serves, deletes and recreates one
that a dead driver has left, and stops on SIGTERM, SIGINT and SIGHUP.

Options:
  --dir DIR               The directory to serve (default: AERON_DIR, or else Aeron's own default)
  --delete-dir-on-exit    Delete the directory at the end (as AERON_DIR_DELETE_ON_SHUTDOWN=1 does)
  --lease PATH            Stop once no process holds a lock (flock) on this file any more
  --lease-grace SECONDS   How long the lease must have been free before that (default: 0)
  --remove PATH           Remove this file or folder, too, when the lease has ended; may be repeated
  --alive-fd FD           A descriptor whose lock says that the driver lives: held until the process is gone
  --ready-fd FD           Print the line of JSON there instead of on standard output, and close it
  --version               Print the versions of this program, of the driver's crate and of Aeron
  --help                  Print this text

Exit codes:
  0    stopped: by a signal, by a client's request, or because its lease had ended
  1    failed
  2    wrong arguments
  3    a live driver serves the directory
  4    the directory's file system has too little room
  101  a defect in this program
";

pub enum Command {
    Help,
    Version,
    Run(Options),
}

#[derive(Default)]
pub struct Options {
    pub dir: Option<PathBuf>,
    pub delete_dir_on_exit: bool,
    pub lease: Option<PathBuf>,
    pub lease_grace: Duration,
    pub remove: Vec<PathBuf>,
    /// Never used, only held: the lock on it goes when the process does.
    pub _alive: Option<OwnedFd>,
    pub ready: Option<File>,
}

pub fn parse(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut options = Options::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Command::Help),
            Long("version") | Short('V') => return Ok(Command::Version),
            // Aeron takes no other names.
            Long("dir") => options.dir = Some(parser.value()?.string()?.into()),
            Long("delete-dir-on-exit") => options.delete_dir_on_exit = true,
            Long("lease") => options.lease = Some(parser.value()?.into()),
            Long("lease-grace") => options.lease_grace = parser.value()?.parse_with(seconds)?,
            Long("remove") => options.remove.push(parser.value()?.into()),
            Long("alive-fd") => options._alive = Some(inherited(parser.value()?)?),
            Long("ready-fd") => options.ready = Some(inherited(parser.value()?)?.into()),
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(Command::Run(options))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{error}"))
}

fn inherited(value: OsString) -> Result<OwnedFd, lexopt::Error> {
    let fd: RawFd = value.parse()?;
    // SAFETY: fcntl with F_SETFD takes no pointer and is defined for every integer.
    if fd <= libc::STDERR_FILENO || unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return Err(format!("{fd} is no descriptor that this process was given").into());
    }
    // SAFETY: it is open, and who starts this program gives it away by naming it here.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::IntoRawFd;

    fn parse_words(words: &[&str]) -> Result<Command, String> {
        parse(lexopt::Parser::from_args(words)).map_err(|error| error.to_string())
    }

    fn run_options(words: &[&str]) -> Options {
        match parse_words(words) {
            Ok(Command::Run(options)) => options,
            Ok(_) => panic!("not a run"),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn without_arguments_everything_comes_from_the_environment() {
        let options = run_options(&[]);
        assert_eq!(options.dir, None);
        assert!(!options.delete_dir_on_exit);
        assert_eq!(options.lease, None);
        assert_eq!(options.lease_grace, Duration::ZERO);
    }

    #[test]
    fn every_option_is_read() {
        let file = tempfile::tempfile().unwrap().into_raw_fd().to_string();
        let options = run_options(&[
            "--dir=/a",
            "--delete-dir-on-exit",
            "--lease",
            "/a.lease",
            "--lease-grace=0.5",
            "--remove=/b",
            "--remove",
            "/c",
            "--alive-fd",
            &file,
        ]);
        assert_eq!(options.dir, Some("/a".into()));
        assert!(options.delete_dir_on_exit);
        assert_eq!(options.lease, Some("/a.lease".into()));
        assert_eq!(options.lease_grace, Duration::from_millis(500));
        assert_eq!(options.remove, [PathBuf::from("/b"), PathBuf::from("/c")]);
        assert!(options._alive.is_some());
    }

    #[test]
    fn what_it_does_not_know_is_an_error_that_names_it() {
        assert!(parse_words(&["--leese"]).is_err_and(|error| error.contains("--leese")));
        assert!(parse_words(&["/a"]).is_err_and(|error| error.contains("/a")));
        assert!(parse_words(&["--lease-grace=-1"]).is_err());
        assert!(parse_words(&["--lease-grace=soon"]).is_err());
        assert!(parse_words(&["--dir"]).is_err());
    }

    #[test]
    fn a_descriptor_that_is_not_open_is_an_error() {
        assert!(parse_words(&["--ready-fd=1000000"]).is_err_and(|error| error.contains("1000000")));
        assert!(parse_words(&["--alive-fd=-1"]).is_err());
        assert!(parse_words(&["--alive-fd=1"]).is_err());
    }

    #[test]
    fn help_names_every_option() {
        for option in [
            "--dir",
            "--delete-dir-on-exit",
            "--lease",
            "--lease-grace",
            "--remove",
            "--alive-fd",
            "--ready-fd",
        ] {
            assert!(HELP.contains(&format!("  {option} ")), "{option}");
        }
    }
}
