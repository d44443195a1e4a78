//! What is answered.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An answer: a head and a body, or a head and a body that goes on.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub media_type: &'static str,
    pub body: Vec<u8>,
    /// Headers besides those that every answer has.
    pub headers: Vec<(&'static str, &'static str)>,
    /// What comes behind the body, for as long as somebody reads it.
    pub stream: Option<Box<dyn Stream>>,
}

/// A body that goes on.
pub trait Stream: Send + fmt::Debug {
    /// Waits for the next piece, no longer than this.
    fn next(&mut self, patience: Duration) -> Next;
}

/// What comes next of a body that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Piece(Arc<str>),
    /// Not yet.
    Nothing,
    End,
}

impl Response {
    pub fn new(media_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status: 200, media_type, body: body.into(), headers: Vec::new(), stream: None }
    }

    /// Server-sent events, as they come.
    pub fn events(stream: Box<dyn Stream>) -> Response {
        Response { stream: Some(stream), ..Response::new("text/event-stream", "") }
    }

    /// A status, and a sentence about it.
    pub fn because(status: u16, sentence: &str) -> Response {
        Response { status, ..Response::new("text/plain; charset=utf-8", format!("{sentence}\n")) }
    }

    /// To whoever wants something changed where nothing can be.
    pub fn read_only() -> Response {
        Response::because(405, "Only GET and HEAD are answered here.").with("Allow", "GET, HEAD")
    }

    pub fn with(mut self, name: &'static str, value: &'static str) -> Response {
        self.headers.push((name, value));
        self
    }

    /// Everything before the body.
    pub fn head(&self) -> String {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            409 => "Conflict",
            413 => "Content Too Large",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "Error",
        };
        // Where a body goes on, it ends with the connection.
        let length = match self.stream {
            None => format!("Content-Length: {}\r\n", self.body.len()),
            Some(_) => String::new(),
        };
        let mut head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\n{length}Connection: close\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\n",
            self.status, self.media_type,
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head
    }
}
