//! The Aeron media driver itself.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusteron_media_driver::bindings::{AERON_ERROR_CODE_STORAGE_SPACE, aeron_errcode};
use rusteron_media_driver::{AeronCError, AeronDriver, AeronDriverContext};

use crate::stop;

pub struct EngineError {
    code: i32,
    pub message: String,
}

impl EngineError {
    /// To be called at once: Aeron keeps the last error of a thread only.
    fn capture(error: AeronCError) -> Self {
        // SAFETY: reads a thread-local of Aeron's.
        let code = unsafe { aeron_errcode() };
        let message = error.capture_errmsg().message().unwrap_or_default().to_owned();
        Self { code, message }
    }

    pub fn is_lack_of_space(&self) -> bool {
        let storage_space = -(AERON_ERROR_CODE_STORAGE_SPACE as i32);
        [libc::ENOSPC, libc::EDQUOT, storage_space].contains(&self.code)
    }
}

/// A driver that has read its settings and touched nothing yet.
pub struct Configured {
    context: AeronDriverContext,
    deletes_dir_on_shutdown: bool,
}

impl Configured {
    pub fn dir(&self) -> PathBuf {
        PathBuf::from(self.context.get_dir())
    }

    /// How old the heartbeat of a live driver can be (`AERON_DRIVER_TIMEOUT`).
    pub fn driver_timeout(&self) -> Duration {
        Duration::from_millis(self.context.get_driver_timeout_ms())
    }

    /// What `AERON_DIR_DELETE_ON_SHUTDOWN` says.
    pub fn deletes_dir_on_shutdown(&self) -> bool {
        self.deletes_dir_on_shutdown
    }

    /// Recreates the directory, which must be nobody else's, and starts the driver's threads.
    pub fn launch(self) -> Result<Engine, EngineError> {
        let driver = AeronDriver::new(&self.context).map_err(EngineError::capture)?;
        driver.start(true).map_err(EngineError::capture)?;
        Ok(Engine { driver })
    }
}

pub struct Engine {
    driver: AeronDriver,
}

impl Engine {
    /// Reads the settings: `dir`, and the environment for the rest.
    pub fn configure(dir: Option<&Path>) -> Result<Configured, EngineError> {
        let context = AeronDriverContext::new().map_err(EngineError::capture)?;
        if let Some(dir) = dir {
            let dir = CString::new(dir.as_os_str().as_bytes()).expect("arguments hold no zero bytes");
            context.set_dir(&dir).map_err(EngineError::capture)?;
        }
        let deletes_dir_on_shutdown = context.get_dir_delete_on_shutdown();
        // Both are done by this program: Aeron would delete the directory of a live driver, too.
        context
            .set_dir_delete_on_shutdown(false)
            .map_err(EngineError::capture)?;
        context.set_dir_delete_on_start(true).map_err(EngineError::capture)?;
        context.apply_cgroup_cpuset_affinity().map_err(EngineError::capture)?;
        context.set_thread_affinity_on_start();
        context
            .set_driver_termination_hook(Some(stop::request))
            .map_err(EngineError::capture)?;
        Ok(Configured {
            context,
            deletes_dir_on_shutdown,
        })
    }

    /// Works until a stop is requested, and ends the driver.
    pub fn run(self) -> Result<(), EngineError> {
        while !stop::is_requested() {
            let work_count = self.driver.main_do_work().map_err(EngineError::capture)?;
            self.driver.main_idle_strategy(work_count);
        }
        Ok(())
    }
}
