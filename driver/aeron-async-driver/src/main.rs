//! The Aeron media driver as a supervised process.
//!
//! It serves one directory until it is told to stop, or until nobody holds its lease any more, and leaves nothing behind.

mod directory;
mod engine;
mod lease;
mod options;
mod ready;
mod stop;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use directory::{Occupant, ServedDirectory};
use engine::{Engine, EngineError};
use lease::Lease;
use options::{Command, Options};

/// What a process that has ended says of why. `--help` lists these.
enum Failure {
    Other(String),
    DirectoryInUse(String),
    NoSpace(String),
}

impl Failure {
    const OTHER: u8 = 1;
    const USAGE: u8 = 2;
    const DIRECTORY_IN_USE: u8 = 3;
    const NO_SPACE: u8 = 4;

    fn code(&self) -> u8 {
        match self {
            Self::Other(_) => Self::OTHER,
            Self::DirectoryInUse(_) => Self::DIRECTORY_IN_USE,
            Self::NoSpace(_) => Self::NO_SPACE,
        }
    }

    fn message(&self) -> &str {
        match self {
            Self::Other(message) | Self::DirectoryInUse(message) | Self::NoSpace(message) => message,
        }
    }

    fn of(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let place = format!("{what} {}", path.display());
        move |error| Self::Other(format!("{place}: {error}"))
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        if error.is_lack_of_space() {
            Self::NoSpace(error.message)
        } else {
            Self::Other(error.message)
        }
    }
}

fn main() -> ExitCode {
    match options::parse(lexopt::Parser::from_env()) {
        Ok(Command::Help) => {
            print!("{}", options::HELP);
            ExitCode::SUCCESS
        }
        Ok(Command::Version) => {
            println!("{}", ready::version_line());
            ExitCode::SUCCESS
        }
        Ok(Command::Run(options)) => match run(options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("aeron-async-driver: {}", failure.message());
                ExitCode::from(failure.code())
            }
        },
        Err(error) => {
            eprintln!("aeron-async-driver: {error} (see --help)");
            ExitCode::from(Failure::USAGE)
        }
    }
}

fn run(options: Options) -> Result<(), Failure> {
    stop::on_signals();
    let lease = match &options.lease {
        Some(path) => Some(Lease::open(path, options.lease_grace).map_err(Failure::of("cannot open the lease", path))?),
        None => None,
    };
    let engine = Engine::configure(options.dir.as_deref())?;
    let dir = engine.dir();
    let delete_dir = options.delete_dir_on_exit || engine.deletes_dir_on_shutdown();
    make_way(&dir, &engine)?;

    let engine = engine.launch().inspect_err(|_| {
        // What the failed start has created is ours: `make_way` found nobody else here.
        remove(&dir);
    })?;
    let served = ServedDirectory::mark(&dir).map_err(Failure::of("cannot lock", &dir))?;
    ready::announce(options.ready, &dir);

    let ended_lease = lease.map(watch);
    let result = engine.run();
    // Held until the process is gone: whoever wants to join meanwhile waits, and finds the place empty.
    let ended_lease = ended_lease.and_then(|lease| lease.try_recv().ok());
    if delete_dir {
        remove(&dir);
    }
    if ended_lease.is_some() {
        options.remove.iter().for_each(|path| remove(path));
    }
    drop(served);
    result.map_err(Failure::from)
}

/// Deletes what a dead driver has left in `dir`, or fails where somebody lives there.
fn make_way(dir: &Path, engine: &engine::Configured) -> Result<(), Failure> {
    match directory::occupant(dir, engine.driver_timeout()).map_err(Failure::of("cannot inspect", dir))? {
        Occupant::Nobody | Occupant::DeadDriver => Ok(()),
        Occupant::LiveDriver => Err(Failure::DirectoryInUse(format!(
            "a live driver serves {}",
            dir.display()
        ))),
        Occupant::Stranger(file) => Err(Failure::Other(format!(
            "{} is no Aeron directory and would be deleted: it holds {}",
            dir.display(),
            file.display()
        ))),
    }
}

/// Watches the lease from a thread of its own, which stops the driver, and then hands over the lease that has ended.
fn watch(mut lease: Lease) -> mpsc::Receiver<Lease> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        while !lease.has_ended(Instant::now()) {
            thread::sleep(lease::POLL_INTERVAL);
        }
        // The receiver lives as long as the driver's main loop.
        let _ = sender.send(lease);
        stop::request();
    });
    receiver
}

fn remove(path: &Path) {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            eprintln!("aeron-async-driver: cannot remove {}: {error}", path.display());
        }
        _ => {}
    }
}
