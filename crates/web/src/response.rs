//! What is answered.

/// A whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub media_type: &'static str,
    pub body: Vec<u8>,
    /// A header that goes with the status.
    pub header: Option<(&'static str, &'static str)>,
}

impl Response {
    pub fn new(media_type: &'static str, body: impl Into<Vec<u8>>) -> Response {
        Response { status: 200, media_type, body: body.into(), header: None }
    }

    /// A status, and a sentence about it.
    pub fn because(status: u16, sentence: &str) -> Response {
        Response { status, ..Response::new("text/plain; charset=utf-8", format!("{sentence}\n")) }
    }

    pub fn with(self, name: &'static str, value: &'static str) -> Response {
        Response { header: Some((name, value)), ..self }
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
            413 => "Content Too Large",
            431 => "Request Header Fields Too Large",
            503 => "Service Unavailable",
            _ => "Error",
        };
        let mut head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n",
            self.status,
            self.media_type,
            self.body.len()
        );
        if let Some((name, value)) = self.header {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head
    }
}
