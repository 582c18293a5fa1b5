//! The command line.

use std::ffi::CString;
use std::str::FromStr;
use std::time::Duration;

use lexopt::prelude::*;

use crate::Result;

pub enum Mode {
    Pool,
    Latency,
    Throughput,
    RpcServer,
    RpcClient,
    MarketPublisher,
    MarketConsumer,
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        Ok(match name {
            "pool" => Self::Pool,
            "latency" => Self::Latency,
            "throughput" => Self::Throughput,
            "rpc-server" => Self::RpcServer,
            "rpc-client" => Self::RpcClient,
            "market-publisher" => Self::MarketPublisher,
            "market-consumer" => Self::MarketConsumer,
            _ => return Err(format!("there is no mode '{name}'")),
        })
    }
}

/// A channel and a stream of it.
pub struct Stream {
    pub channel: CString,
    pub id: i32,
}

pub struct Options {
    pub mode: Mode,
    pub aeron_dir: CString,
    pub size: usize,
    /// Messages of a batch, and fragments that one poll may give.
    pub batch: u64,
    /// Whether ticks are written and read; if not, messages are only counted.
    pub ticks: bool,
    /// Messages a second; 0: as many as go.
    pub rate: u64,
    seconds: f64,
    messages: Option<u64>,
    stream: Stream,
    reply_stream: Stream,
}

impl Options {
    pub fn from_arguments() -> Result<Self> {
        let mut arguments = lexopt::Parser::from_env();
        let mut mode = None;
        let mut options = Self {
            mode: Mode::Pool,
            aeron_dir: CString::default(),
            size: 32,
            batch: 1000,
            ticks: true,
            rate: 0,
            seconds: 1.0,
            messages: None,
            stream: Stream {
                channel: c"aeron:ipc".into(),
                id: 1001,
            },
            reply_stream: Stream {
                channel: c"aeron:ipc".into(),
                id: 1002,
            },
        };
        while let Some(argument) = arguments.next()? {
            match argument {
                Value(name) if mode.is_none() => mode = Some(name.parse()?),
                Long("aeron-dir") => options.aeron_dir = CString::new(arguments.value()?.string()?)?,
                Long("channel") => options.stream.channel = CString::new(arguments.value()?.string()?)?,
                Long("stream") => options.stream.id = arguments.value()?.parse()?,
                Long("reply-channel") => options.reply_stream.channel = CString::new(arguments.value()?.string()?)?,
                Long("reply-stream") => options.reply_stream.id = arguments.value()?.parse()?,
                Long("size") => options.size = arguments.value()?.parse()?,
                Long("seconds") => options.seconds = arguments.value()?.parse()?,
                Long("messages") => options.messages = Some(arguments.value()?.parse()?),
                Long("batch") => options.batch = arguments.value()?.parse()?,
                Long("tick") => options.ticks = arguments.value()?.parse_with(ticks)?,
                Long("rate") => options.rate = arguments.value()?.parse()?,
                _ => return Err(argument.unexpected().into()),
            }
        }
        options.mode = mode.ok_or("a mode is missing")?;
        options.checked()
    }

    fn checked(self) -> Result<Self> {
        if self.size < crate::tick::LENGTH {
            return Err(format!("--size must be at least {}", crate::tick::LENGTH).into());
        }
        if self.batch == 0 {
            return Err("--batch must not be 0".into());
        }
        if Duration::try_from_secs_f64(self.seconds).is_err() {
            return Err("--seconds must not be negative".into());
        }
        if self.aeron_dir.is_empty() && !matches!(self.mode, Mode::Pool) {
            return Err("--aeron-dir is missing".into());
        }
        Ok(self)
    }

    /// What messages are sent on.
    pub fn own_stream(&self) -> &Stream {
        &self.stream
    }

    /// What replies come on.
    pub fn reply_stream(&self) -> &Stream {
        &self.reply_stream
    }

    pub fn seconds(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    pub fn extent(&self) -> Extent {
        self.messages.map_or(Extent::Time(self.seconds()), Extent::Messages)
    }
}

fn ticks(value: &str) -> std::result::Result<bool, &'static str> {
    match value {
        "full" => Ok(true),
        "none" => Ok(false),
        _ => Err("ticks are 'full' or 'none'"),
    }
}

/// How long a run lasts.
pub enum Extent {
    Messages(u64),
    Time(Duration),
}

impl Extent {
    /// The time before a run that counts, in which caches and the log's pages are used for the first time.
    pub const WARM_UP: Self = Self::Time(Duration::from_millis(200));

    /// How many messages may follow the first `done`: any number until the time is over.
    pub fn left(&self, done: u64, elapsed: Duration) -> u64 {
        match *self {
            Self::Messages(messages) => messages - done.min(messages),
            Self::Time(time) if elapsed < time => u64::MAX,
            Self::Time(_) => 0,
        }
    }
}
