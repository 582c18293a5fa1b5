//! Standard input and output: the peer says that it is ready, hears that it may go, and ends when nobody listens.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::Result;
use crate::wait::LIMIT;

pub struct Control {
    go: Receiver<()>,
    closed: Arc<AtomicBool>,
}

impl Control {
    /// Says `ready`, and returns when `go` has come.
    pub fn ready() -> Result<Self> {
        println!("ready");
        let control = Self::listen();
        match control.go.recv_timeout(LIMIT) {
            Ok(()) => Ok(control),
            Err(RecvTimeoutError::Timeout) => Err("nobody has said go".into()),
            Err(RecvTimeoutError::Disconnected) => Err("standard input was closed before it said go".into()),
        }
    }

    fn listen() -> Self {
        let (said, go) = mpsc::channel();
        let closed = Arc::new(AtomicBool::new(false));
        let control = Self {
            go,
            closed: Arc::clone(&closed),
        };
        thread::spawn(move || {
            for line in io::stdin().lock().lines().map_while(io::Result::ok) {
                if line == "go" && said.send(()).is_err() {
                    return;
                }
            }
            closed.store(true, Ordering::Relaxed);
        });
        control
    }

    /// Whether standard input has been closed.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Waits until standard input is closed, but no longer than this.
    pub fn linger(&self, limit: Duration) {
        // Nothing more is said: only the end of the other side ends it early.
        let _ = self.go.recv_timeout(limit);
    }
}
