//! Requests and responses of HTTP/1.1, one for each connection.

use std::io::{self, Read, Write};

/// The most bytes of a request line and its headers.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// The most headers.
const MAX_HEADERS: usize = 64;
/// The most bytes of a body.
pub const MAX_BODY_BYTES: usize = 1 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: String,
    /// The path, without a query.
    pub path: String,
    /// The headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// Returns the value of a header that occurs once; `None` if it is absent or repeated.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(key, _)| key == name);
        let (_, value) = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// Returns true if a header occurs.
    pub fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(key, _)| key == name)
    }
}

/// An error while reading a request.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The bytes are not a request.
    #[error("not a request of HTTP/1.1: {0}")]
    Malformed(String),
    /// The request line and headers are too long.
    #[error("the headers are longer than {MAX_HEAD_BYTES} bytes")]
    HeadTooLarge,
    #[error("the body is longer than {MAX_BODY_BYTES} bytes: shorten the text")]
    BodyTooLarge,
    /// The body has no length.
    #[error("a body without a Content-Length is not available")]
    NoLength,
    /// The connection failed, ended or was too slow.
    #[error(transparent)]
    Connection(#[from] io::Error),
}

impl HttpError {
    /// Returns the status of the response; `None` if the connection is lost.
    pub fn status(&self) -> Option<&'static str> {
        match self {
            HttpError::Malformed(_) => Some("400 Bad Request"),
            HttpError::HeadTooLarge => Some("431 Request Header Fields Too Large"),
            HttpError::BodyTooLarge => Some("413 Content Too Large"),
            HttpError::NoLength => Some("411 Length Required"),
            HttpError::Connection(_) => None,
        }
    }
}

/// Reads a request.
///
/// # Errors
/// If the bytes are not a request, exceed a limit, or end early.
pub fn read_request(from: &mut impl Read) -> Result<HttpRequest, HttpError> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let (mut request, length) = loop {
        if let Some(head) = parse_head(&bytes)? {
            bytes.drain(..head.head_length);
            break (head.request, head.body_length);
        }
        if bytes.len() >= MAX_HEAD_BYTES {
            return Err(HttpError::HeadTooLarge);
        }
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Err(HttpError::Connection(io::ErrorKind::UnexpectedEof.into()));
        }
        bytes.extend(buffer.iter().take(read));
    };
    if length > MAX_BODY_BYTES {
        return Err(HttpError::BodyTooLarge);
    }
    let missing = length.saturating_sub(bytes.len());
    let read = from.take(missing as u64).read_to_end(&mut bytes)?;
    if read < missing {
        return Err(HttpError::Connection(io::ErrorKind::UnexpectedEof.into()));
    }
    bytes.truncate(length);
    request.body = bytes;
    Ok(request)
}

/// A request without its body.
struct RequestHead {
    request: HttpRequest,
    head_length: usize,
    body_length: usize,
}

/// Parses the head of a request; `None` if more bytes are needed.
fn parse_head(bytes: &[u8]) -> Result<Option<RequestHead>, HttpError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let malformed = |error: &dyn std::fmt::Display| HttpError::Malformed(error.to_string());
    let head = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(malformed(&error)),
    };
    if head > MAX_HEAD_BYTES {
        return Err(HttpError::HeadTooLarge);
    }
    let header = |header: &httparse::Header<'_>| {
        (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).trim().to_owned())
    };
    let path = parsed.path.unwrap_or_default();
    let request = HttpRequest {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.split(['?', '#']).next().unwrap_or_default().to_owned(),
        headers: parsed.headers.iter().map(header).collect(),
        body: Vec::new(),
    };
    if request.has_header("transfer-encoding") {
        return Err(HttpError::NoLength);
    }
    let length = match (request.header("content-length"), request.has_header("content-length")) {
        (Some(length), _) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            // A number that does not fit is too large as well.
            length.parse().unwrap_or(usize::MAX)
        }
        (None, false) => 0,
        _ => return Err(malformed(&"the Content-Length is not a number")),
    };
    Ok(Some(RequestHead { request, head_length: head, body_length: length }))
}

#[derive(Clone, Debug)]
pub struct HttpResponse<'a> {
    /// The status, such as `200 OK`.
    pub status: &'a str,
    pub media: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

/// The content security policy of all responses: no resources and requests of other origins.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

impl HttpResponse<'_> {
    /// Writes the response.
    ///
    /// # Errors
    /// If the connection fails.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             Content-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\n",
            self.status,
            self.media,
            self.body.len()
        );
        for (name, value) in self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        to.write_all(head.as_bytes())?;
        to.write_all(self.body)?;
        to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<HttpRequest, HttpError> {
        read_request(&mut text.as_bytes())
    }

    #[test]
    fn a_request_has_a_path_headers_and_a_body() {
        let request = read("POST /a/b?c HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcdef").unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/a/b"));
        assert_eq!((request.header("host"), request.body.as_slice()), (Some("x"), &b"abc"[..]));
        assert_eq!(read("GET / HTTP/1.1\r\n\r\n").unwrap().body, b"");
    }

    #[test]
    fn limits_and_mistakes_have_a_status() {
        let status = |text: &str| read(text).unwrap_err().status();
        assert_eq!(status("GET\r\n\r\n"), Some("400 Bad Request"));
        assert_eq!(status(&"GET / HTTP/1.1\r\n".repeat(2000)), Some("400 Bad Request"));
        let long = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(MAX_HEAD_BYTES));
        assert_eq!(status(&long), Some("431 Request Header Fields Too Large"));
        let length = |length: &str| status(&format!("POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n"));
        assert_eq!(length(&(MAX_BODY_BYTES + 1).to_string()), Some("413 Content Too Large"));
        assert_eq!(length("99999999999999999999999"), Some("413 Content Too Large"));
        assert_eq!(length("-1"), Some("400 Bad Request"));
        assert_eq!(length("1\r\nContent-Length: 2"), Some("400 Bad Request"));
        assert_eq!(
            status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Some("411 Length Required")
        );
        // The connection ended.
        assert_eq!(length("5"), None);
        assert_eq!(status("GET / HT"), None);
    }
}
