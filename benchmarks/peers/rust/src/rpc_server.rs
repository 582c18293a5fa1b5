//! Mode `rpc-server`: every request goes back as it is.

use std::hint::spin_loop;

use crate::Result;
use crate::client::{Client, offer};
use crate::control::Control;
use crate::options::Options;

/// The length of the request that ends the server.
const END: usize = 1;

pub fn run(options: &Options) -> Result<()> {
    let client = Client::connect(options)?;
    let requests = client.subscription(options.own_stream())?;
    let replies = client.publication(options.reply_stream())?;
    let control = Control::ready()?;

    let mut served = 0_u64;
    let mut ended = false;
    while !ended && !control.is_closed() {
        // A handler cannot fail: what went wrong in it is looked at after the poll.
        let mut outcome = Ok(());
        let polled = requests.poll_fn(
            |request, _| {
                if request.len() == END {
                    ended = true;
                } else if outcome.is_ok() {
                    outcome = offer(&replies, request, || Ok(()));
                    served += 1;
                }
            },
            options.batch as usize,
        )?;
        outcome?;
        if polled == 0 {
            spin_loop();
        }
    }
    println!(r#"{{"messages": {served}}}"#);
    Ok(())
}
