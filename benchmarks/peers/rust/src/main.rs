//! A peer of the benchmarks over Aeron's C client, from Rust (`rusteron-client`).
//!
//! Modes, options and output are those of every peer: `benchmarks/README.md`, "Peer programs".

mod client;
mod control;
mod histogram;
mod market;
mod options;
mod pool;
mod round_trips;
mod rpc_server;
mod throughput;
mod tick;
mod wait;

use std::process::ExitCode;

use options::{Mode, Options};
use pool::Pool;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    match Options::from_arguments().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<()> {
    match options.mode {
        Mode::Pool => {
            println!(r#"{{"sha256": "{}"}}"#, Pool::new(options.size, false).digest());
            Ok(())
        }
        Mode::Latency => round_trips::run(&options, options.own_stream()),
        Mode::Throughput => throughput::run(&options),
        Mode::RpcServer => rpc_server::run(&options),
        Mode::RpcClient => round_trips::run(&options, options.reply_stream()),
        Mode::MarketPublisher => market::publish(&options),
        Mode::MarketConsumer => market::consume(&options),
    }
}
