//! Asking the driver to stop, from a signal handler or any thread.

use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Makes SIGTERM, SIGINT and SIGHUP request a stop.
pub fn on_signals() {
    extern "C" fn handle(_signal: libc::c_int) {
        request();
    }
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        // SAFETY: the handler does nothing but store to an atomic.
        unsafe { libc::signal(signal, handle as extern "C" fn(libc::c_int) as libc::sighandler_t) };
    }
}

pub fn request() {
    REQUESTED.store(true, Ordering::Release);
}

/// Pairs with the release in `request`, so that what was done before the request is seen after it.
pub fn is_requested() -> bool {
    REQUESTED.load(Ordering::Acquire)
}
