//! The connections of the server, and the checks of their requests.

use std::borrow::Cow;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::http::{HttpError, HttpRequest, HttpResponse, read_request};

/// The most connections at a time.
const MAX_CONNECTIONS: usize = 32;
/// The time limit for reading a request, and again for writing its response.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a refused body that are read, so that its sender sees the response.
const MAX_DRAINED_BYTES: u64 = 16 << 20;

/// A file that the server returns.
#[derive(Clone, Debug)]
pub struct ServedFile {
    /// Its name in the folder of the page; the first file is the page itself.
    pub name: Cow<'static, str>,
    pub media: Cow<'static, str>,
    pub bytes: Cow<'static, [u8]>,
}

/// Answers the questions of the page.
pub trait QuestionHandler: Send + Sync + 'static {
    /// Returns the answer to a question, both as JSON. `is_gone` returns true once the other side closed the connection.
    fn answer(&self, question: &str, is_gone: &dyn Fn() -> bool) -> String;
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
}

/// The state that the threads of connections share.
struct SharedSite<H> {
    address: SocketAddr,
    token: String,
    files: Vec<ServedFile>,
    handler: H,
    connections: AtomicUsize,
}

impl Server {
    /// Listens on 127.0.0.1. Port 0 is any free one.
    ///
    /// # Errors
    /// If the port is not free.
    pub fn bind(port: u16, token: String) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        Ok(Server { listener, address, token })
    }

    /// Returns the address of the page.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token)
    }

    /// Answers requests until the process ends.
    ///
    /// # Errors
    /// If the listener fails.
    pub fn run<H: QuestionHandler>(self, files: Vec<ServedFile>, handler: H) -> io::Result<()> {
        let Server { listener, address, token } = self;
        let site = SharedSite { address, token, files, handler, connections: AtomicUsize::new(0) };
        let site = Arc::new(site);
        for stream in listener.incoming() {
            // A connection that failed before it was accepted concerns no other one.
            let Ok(stream) = stream else { continue };
            let site = Arc::clone(&site);
            let open_connections = site.connections.fetch_add(1, Ordering::Relaxed);
            let work = move || {
                // A closed connection needs no response.
                drop(site.serve(&stream, open_connections < MAX_CONNECTIONS));
                site.connections.fetch_sub(1, Ordering::Relaxed);
            };
            thread::Builder::new().spawn(work)?;
        }
        Ok(())
    }
}

impl<H: QuestionHandler> SharedSite<H> {
    /// Reads a request and writes its response.
    fn serve(&self, stream: &TcpStream, has_room: bool) -> io::Result<()> {
        stream.set_write_timeout(Some(CONNECTION_TIMEOUT))?;
        let mut reader = TimedReader { stream, deadline: Instant::now() + CONNECTION_TIMEOUT };
        let refuse = |status: &str, why: &str| {
            let body = format!("{why}\n");
            let (media, body) = ("text/plain; charset=utf-8", body.as_bytes());
            HttpResponse { status, media, headers: &[], body }.write(&mut &*stream)
        };
        if !has_room {
            return refuse("503 Service Unavailable", "too many connections: try again");
        }
        match read_request(&mut reader) {
            Ok(request) => self.respond(&request, stream, refuse),
            Err(error @ HttpError::Connection(_)) => Err(io::Error::other(error)),
            Err(error) => {
                refuse(error.status().unwrap_or("400 Bad Request"), &error.to_string())?;
                // Closing with unread bytes would reset the connection before the response is read.
                stream.shutdown(Shutdown::Write)?;
                io::copy(&mut reader.take(MAX_DRAINED_BYTES), &mut io::sink())?;
                Ok(())
            }
        }
    }

    fn respond(
        &self,
        request: &HttpRequest,
        stream: &TcpStream,
        refuse: impl Fn(&str, &str) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Err(why) = self.check_sender(request) {
            return refuse("403 Forbidden", why);
        }
        let mut parts = request.path.trim_start_matches('/').splitn(2, '/');
        let (token, name) = (parts.next().unwrap_or_default(), parts.next());
        if !is_same_token(token, &self.token) {
            let why = "no page here: open the address that `vk-litmus serve` printed, with its token";
            return refuse("404 Not Found", why);
        }
        match (request.method.as_str(), name) {
            ("GET", None) => {
                let location = format!("/{}/", self.token);
                let headers = &[("Location", location.as_str())];
                let media = "text/plain; charset=utf-8";
                HttpResponse { status: "308 Permanent Redirect", media, headers, body: b"" }
                    .write(&mut &*stream)
            }
            ("GET", Some(name)) => {
                let file = self.files.iter().find(|file| file.name == name);
                let file = file.or_else(|| self.files.first().filter(|_| name.is_empty()));
                let Some(file) = file else { return refuse("404 Not Found", "no such file") };
                let (media, body) = (&*file.media, &*file.bytes);
                HttpResponse { status: "200 OK", media, headers: &[], body }.write(&mut &*stream)
            }
            ("POST", Some("answer")) => {
                // Forms of other pages cannot have this type without asking first.
                let is_json =
                    |media: &str| media.split(';').next().map(str::trim) == Some("application/json");
                if !request.header("content-type").is_some_and(is_json) {
                    return refuse("415 Unsupported Media Type", "expected application/json");
                }
                let Ok(question) = std::str::from_utf8(&request.body) else {
                    return refuse("400 Bad Request", "the body is not UTF-8");
                };
                let answer = self.handler.answer(question, &|| is_connection_closed(stream));
                let (media, body) = ("application/json", answer.as_bytes());
                HttpResponse { status: "200 OK", media, headers: &[], body }.write(&mut &*stream)
            }
            _ => refuse("405 Method Not Allowed", "expected GET, or POST to `answer`"),
        }
    }

    /// Checks that the request is for this server and not of another page.
    fn check_sender(&self, request: &HttpRequest) -> Result<(), &'static str> {
        let port = self.address.port();
        let own_hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        if !request.header("host").is_some_and(|host| own_hosts.iter().any(|own| own == host)) {
            return Err("the Host is not this server: open the address that `vk-litmus serve` printed");
        }
        let is_own_origin = |origin: &str| {
            origin.strip_prefix("http://").is_some_and(|host| own_hosts.iter().any(|own| own == host))
        };
        if request.has_header("origin") && !request.header("origin").is_some_and(is_own_origin) {
            return Err("requests of other pages are refused");
        }
        Ok(())
    }
}

/// Compares tokens in a time that does not depend on their first difference.
fn is_same_token(candidate: &str, own: &str) -> bool {
    let difference =
        candidate.bytes().zip(own.bytes()).fold(0, |unlike, (one, other)| unlike | (one ^ other));
    candidate.len() == own.len() && difference == 0
}

/// Returns true if the other side closed the connection.
fn is_connection_closed(stream: &TcpStream) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let is_closed = match stream.peek(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    };
    is_closed || stream.set_nonblocking(false).is_err()
}

/// Reads from a connection until a deadline.
struct TimedReader<'s> {
    stream: &'s TcpStream,
    deadline: Instant,
}

impl Read for TimedReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(remaining))?;
        let mut stream = self.stream;
        stream.read(bytes)
    }
}
