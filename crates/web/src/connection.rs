//! One connection: a request, an answer, the end.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection};

use crate::Response;
use crate::request::{self, Method, Refusal};
use crate::server::Door;
use crate::wire::Wire;

/// How long a request may take to arrive.
const TO_ASK: Duration = Duration::from_secs(5);
/// How long an answer may take to be read.
const TO_READ: Duration = Duration::from_secs(30);
/// How long is waited for a peer that goes on sending.
const TO_END: Duration = Duration::from_millis(500);

pub fn serve(stream: TcpStream, door: &Door) {
    let mut wire = Wire::new(stream, TO_ASK);
    // Who does not hear the answer does without.
    let _ = match &door.tls {
        None => converse(&mut wire, |wire| wire, door),
        Some(config) => converse_in_secret(&mut wire, config.clone(), door),
    };
    wire.finish(TO_END);
}

fn converse_in_secret(wire: &mut Wire, config: Arc<ServerConfig>, door: &Door) -> io::Result<()> {
    let mut connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = rustls::Stream::new(&mut connection, wire);
    converse(&mut stream, |stream| &mut *stream.sock, door)?;
    stream.conn.send_close_notify();
    stream.conn.write_tls(&mut stream.sock).map(drop)
}

/// A request and its answer, by a stream over a wire.
fn converse<S: Read + Write>(
    stream: &mut S,
    wire: impl Fn(&mut S) -> &mut Wire,
    door: &Door,
) -> io::Result<()> {
    let asked = request::read(stream);
    let (response, method) = match asked {
        Ok(request) => (door.answer(&request), request.method),
        Err(Refusal::Gone) => return Ok(()),
        Err(refusal) => (refuse(refusal), Method::Get),
    };
    wire(stream).allow(TO_READ);
    send(stream, &response, method)
}

fn send(to: &mut impl Write, response: &Response, method: Method) -> io::Result<()> {
    to.write_all(response.head().as_bytes())?;
    if method == Method::Get {
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
        Refusal::NotAllowed => {
            Response::because(405, "Only GET and HEAD are answered here.").with("Allow", "GET, HEAD")
        }
        Refusal::Body => Response::because(413, "A request must not bring anything."),
    }
}
