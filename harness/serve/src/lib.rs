//! A web server on the loopback interface for one page and its requests.
//!
//! The server is for local use, and other pages in the same browser must not reach it. Three checks prevent
//! that: a random token in the path, which other pages cannot read; the `Host` header, so that a foreign name
//! that resolves to 127.0.0.1 is refused; and the `Origin` header, so that a request of a foreign page is
//! refused even with the token. Requests have limits on their size and time, and connections on their number.
//! Every response ends its connection.
//!
//! [`read_request`] reads HTTP/1 requests, and [`Server`] answers them.

mod http;
mod server;

pub use http::{HttpError, HttpRequest, MAX_BODY_BYTES, read_request};
pub use server::{QuestionHandler, ServedFile, Server};
