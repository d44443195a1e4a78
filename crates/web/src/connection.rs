//! One connection: a request, an answer, the end. An answer that goes on has its end when its reader or the server has gone.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection};

use crate::Response;
use crate::places::{Place, VisitPhase};
use crate::request::{Method, Refusal, Request};
use crate::response::{Next, Stream};
use crate::server::Door;
use crate::wire::Wire;

/// How long a request may take to arrive.
const TO_ASK: Duration = Duration::from_secs(5);
/// How long an answer may take to be read.
const TO_READ: Duration = Duration::from_secs(10);
/// How long a piece of an answer that goes on may take to be read.
const TO_FOLLOW: Duration = Duration::from_secs(10);
/// How long is waited for a piece before is looked whether the server has ended.
const ROUND: Duration = Duration::from_millis(1_000);
/// How often something is sent where there is nothing to say: only so is it found that a reader has gone.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// What is sent then: a remark, which readers of events pass over.
const SIGN: &str = ":\n\n";
/// How long is waited for a peer that goes on sending.
const TO_END: Duration = Duration::from_millis(500);

pub fn serve(stream: Arc<TcpStream>, place: &Place, door: &Door) {
    let mut wire = Wire::new(stream, TO_ASK);
    // Who does not hear the answer does without.
    let _ = match &door.tls {
        None => converse(&mut wire, |wire| wire, place, door),
        Some(config) => converse_in_secret(&mut wire, config.clone(), place, door),
    };
    wire.finish(TO_END);
}

fn converse_in_secret(
    wire: &mut Wire,
    config: Arc<ServerConfig>,
    place: &Place,
    door: &Door,
) -> io::Result<()> {
    let mut connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = rustls::Stream::new(&mut connection, wire);
    converse(&mut stream, |stream| &mut *stream.sock, place, door)?;
    stream.conn.send_close_notify();
    stream.conn.write_tls(&mut stream.sock).map(drop)
}

/// A request and its answer, by a stream over a wire.
fn converse<S: Read + Write>(
    stream: &mut S,
    wire: impl Fn(&mut S) -> &mut Wire,
    place: &Place,
    door: &Door,
) -> io::Result<()> {
    let asked = Request::read(stream);
    // Who lost the place to somebody else has lost the connection as well.
    if !place.enter(VisitPhase::Answering) {
        return Ok(());
    }
    let (response, method) = match asked {
        Ok(request) => (door.answer(&request), request.method),
        Err(Refusal::Gone) => return Ok(()),
        Err(refusal) => (refuse(refusal), Method::Get),
    };
    wire(stream).allow(TO_READ);
    let goes_on = response.stream.is_some() && method == Method::Get;
    if !place.enter(if goes_on { VisitPhase::Following } else { VisitPhase::Reading }) {
        let sentence = "As many watch as may; close another page.";
        return send(stream, &Response::because(503, sentence), method);
    }
    send(stream, &response, method)?;
    let Some(mut following) = response.stream.filter(|_| goes_on) else { return Ok(()) };
    follow(stream, wire, following.as_mut(), door)
}

/// Sends what comes, for as long as there is a reader and a server.
fn follow<S: Read + Write>(
    stream: &mut S,
    wire: impl Fn(&mut S) -> &mut Wire,
    following: &mut dyn Stream,
    door: &Door,
) -> io::Result<()> {
    let mut last = Instant::now();
    while !door.is_ending() {
        let piece = match following.next(ROUND) {
            Next::Piece(piece) => piece,
            Next::Nothing if last.elapsed() >= HEARTBEAT => SIGN.into(),
            Next::Nothing => continue,
            Next::End => break,
        };
        wire(stream).allow(TO_FOLLOW);
        stream.write_all(piece.as_bytes())?;
        stream.flush()?;
        last = Instant::now();
    }
    Ok(())
}

fn send(to: &mut impl Write, response: &Response, method: Method) -> io::Result<()> {
    to.write_all(response.head().as_bytes())?;
    if method != Method::Head {
        to.write_all(&response.body)?;
    }
    to.flush()
}

fn refuse(refusal: Refusal) -> Response {
    match refusal {
        Refusal::Gone | Refusal::Malformed => {
            Response::because(400, "This is no request that is understood here.")
        }
        Refusal::TooLong => Response::because(431, "The request is too long."),
        Refusal::NotAllowed => Response::read_only(),
        Refusal::Body => Response::because(413, "A request must not bring so much."),
    }
}
