//! The web server: a thread with a small async runtime, its settings, and the checks of every request.

mod connections;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderValue, Method, Response, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use napreduce_answers::RecordingKind;
use napreduce_protocol::Secret;
use thiserror::Error;
use tokio::sync::oneshot;
use tower_http::catch_panic::CatchPanicLayer;

use crate::assets::Assets;
use crate::clock::now_millis;
use crate::context::{Calls, Web};
use crate::events::Events;
use crate::guard::{Hosts, Pace, Purpose, Sessions, Signer, WebRole, protect};
use crate::once::Once;
use crate::problem::Problem;
use crate::routes::{all_routes, router};
use crate::shown::Shown;
use crate::source::PageSource;
use crate::tally::Tally;
use crate::what_if::{WhatIfSettings, WhatIfs};

/// The default address. If the port is taken, another one is used.
pub const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8088);
const HEALTH: &str = "/healthz";
/// Default limit of requests per second.
const REQUESTS_MAX: u32 = 200;

/// The settings of a server.
#[derive(Debug, Clone)]
pub struct WebSettings {
    /// A loopback address. Port 0 selects a free port.
    pub address: SocketAddr,
    /// Whether to use another port if this one is taken.
    pub any_port: bool,
    /// Further accepted host names, such as that of a proxy.
    pub hosts: Vec<String>,
    /// The secret from which the signing key is derived.
    pub secret: Secret,
    /// The file of revocations.
    pub revocations: Option<PathBuf>,
    /// The file of shared links; without it they end with the server.
    pub links: Option<PathBuf>,
    /// Limit of requests per second.
    pub requests_max: u32,
    /// Settings of what-ifs, if they are offered.
    pub what_if: Option<WhatIfSettings>,
}

impl WebSettings {
    /// Returns the defaults: the default address, or another port of it.
    pub fn new(secret: Secret) -> WebSettings {
        WebSettings {
            address: DEFAULT_ADDRESS,
            any_port: true,
            hosts: Vec::new(),
            secret,
            revocations: None,
            links: None,
            requests_max: REQUESTS_MAX,
            what_if: None,
        }
    }
}

/// Why a server cannot be started.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Traffic would be readable on the network.
    #[error(
        "{0} is not a loopback address, and the page is not encrypted; bind 127.0.0.1 and reach it with \
                 nap web serve --coordinator HOST:PORT on your own machine, or ssh -L 8088:127.0.0.1:8088 HOST"
    )]
    NotLocal(SocketAddr),
    #[error("cannot listen on {address}: {source}; name another address with --web")]
    Taken {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("cannot start the web server: {0}")]
    Io(#[from] io::Error),
    #[error("no histories to show")]
    Nothing,
    #[error("{0}")]
    Random(String),
}

/// A web server, stopped on drop.
#[derive(Debug)]
pub struct WebServer {
    address: SocketAddr,
    signer: Signer,
    web: Arc<Web>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl WebServer {
    /// Starts a server.
    ///
    /// # Errors
    /// Fails if the address is taken or not a loopback address.
    pub fn start(
        settings: &WebSettings,
        source: Arc<dyn PageSource>,
    ) -> Result<WebServer, ServeError> {
        WebServer::start_over(settings, source, Vec::new())
    }

    /// Starts a server of several histories; the first one is the default.
    ///
    /// # Errors
    /// As `start`; also if there are no histories.
    pub fn start_recordings(
        settings: &WebSettings,
        recordings: Vec<(String, Arc<dyn PageSource>)>,
    ) -> Result<WebServer, ServeError> {
        let Some((_, first)) = recordings.first() else {
            return Err(ServeError::Nothing);
        };
        let shown = first.clone();
        let recording = |(name, source)| Arc::new(Shown::new(name, RecordingKind::History, source));
        WebServer::start_over(
            settings,
            shown,
            recordings.into_iter().map(recording).collect(),
        )
    }

    fn start_over(
        settings: &WebSettings,
        source: Arc<dyn PageSource>,
        recordings: Vec<Arc<Shown>>,
    ) -> Result<WebServer, ServeError> {
        if !settings.address.ip().is_loopback() {
            return Err(ServeError::NotLocal(settings.address));
        }
        let listener = listen(settings)?;
        let address = listener.local_addr()?;
        let signer = Signer::new(&settings.secret);
        let events = source
            .is_live()
            .then(|| Events::start(source.clone()))
            .transpose()?;
        let web = Arc::new(Web {
            shown: Arc::new(Shown::new(String::new(), RecordingKind::History, source)),
            recordings,
            what_ifs: what_ifs(settings.what_if.as_ref()),
            events,
            sessions: Sessions::new(
                signer.clone(),
                settings.revocations.clone(),
                settings.links.clone(),
                now_millis(),
            ),
            assets: Assets::new(),
            hosts: Hosts::new(address, &settings.hosts),
            pace: Pace::new(
                settings.requests_max,
                Duration::from_secs(1),
                Instant::now(),
            ),
            calls: Calls::new(all_routes().count()),
            tally: Tally::new(now_millis()),
            once: Once::default(),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(32)
            .thread_name("web")
            .enable_all()
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let served = web.clone();
        let thread = std::thread::Builder::new()
            .name("web".to_owned())
            .spawn(move || {
                runtime.block_on(connections::serve(listener, service(served), stopped));
                // Pending requests to a cluster are not waited for.
                runtime.shutdown_background();
            })?;
        Ok(WebServer {
            address,
            signer,
            web,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Issues a sign-in link, valid once within 15 minutes.
    ///
    /// # Errors
    /// Fails if the system has no random numbers.
    pub fn link(&self, role: WebRole) -> Result<String, ServeError> {
        link_of(&self.signer, self.address, role)
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        // Streams never end by themselves.
        if let Some(events) = &self.web.events {
            events.close();
        }
        if let Ok(what_ifs) = &self.web.what_ifs {
            what_ifs.close();
        }
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the thread.
            let _ = thread.join();
        }
    }
}

/// Issues a sign-in link for the server of a cluster on this machine.
///
/// # Errors
/// Fails if the system has no random numbers.
pub fn link(secret: &Secret, address: SocketAddr, role: WebRole) -> Result<String, ServeError> {
    link_of(&Signer::new(secret), address, role)
}

fn link_of(signer: &Signer, address: SocketAddr, role: WebRole) -> Result<String, ServeError> {
    let code = Sessions::code(signer, role, now_millis()).map_err(ServeError::Random)?;
    Ok(format!("http://{address}/#code={code}"))
}

/// Issues a token for a program.
///
/// # Errors
/// Fails if the name is invalid, or the system has no random numbers.
pub fn token(secret: &Secret, role: WebRole, name: &str, days: u32) -> Result<String, ServeError> {
    let for_millis = u64::from(days) * 24 * 60 * 60 * 1_000;
    let issued = Signer::new(secret).issue(Purpose::Token, role, name, now_millis(), for_millis);
    issued.map(|(_, word)| word).map_err(ServeError::Random)
}

/// Starts the what-ifs; if that fails, the page works without them and reports why.
fn what_ifs(settings: Option<&WhatIfSettings>) -> Result<WhatIfs, String> {
    let elsewhere =
        "what-ifs run on the machine of the coordinator; serve the page there: nap web serve";
    let settings = settings.ok_or(elsewhere)?;
    WhatIfs::start(settings.clone()).map_err(|error| error.to_string())
}

fn listen(settings: &WebSettings) -> Result<TcpListener, ServeError> {
    let bound = TcpListener::bind(settings.address);
    let bound = match bound {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && settings.any_port => {
            TcpListener::bind(SocketAddr::new(settings.address.ip(), 0))
        }
        bound => bound,
    };
    let listener = bound.map_err(|source| ServeError::Taken {
        address: settings.address,
        source,
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The first parts of the page's addresses.
const VIEWS: [&str; 8] = [
    "",
    "about",
    "compare",
    "jobs",
    "preemptions",
    "queues",
    "recordings",
    "workers",
];

/// Builds the router. All other paths return the page, which has its own addresses.
fn service(web: Arc<Web>) -> Router {
    router()
        .fallback(page)
        .method_not_allowed_fallback(other_method)
        .layer(CatchPanicLayer::custom(
            |_: Box<dyn std::any::Any + Send>| {
                Problem::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "internal error; please report it",
                )
                .into_response()
            },
        ))
        .layer(from_fn_with_state(web.clone(), guard))
        .with_state(web)
}

async fn guard(State(web): State<Arc<Web>>, mut request: Request, next: Next) -> Response<Body> {
    let path = request.uri().path();
    let is_data = path.starts_with("/api/") || path == "/metrics";
    let refused = match web.hosts.check(request.headers(), is_data) {
        Err(stranger) => Some(stranger.into()),
        // A monitor must be able to tell a busy server from a dead one.
        Ok(()) if path == HEALTH => None,
        Ok(()) if !web.pace.allows(Instant::now()) => Some(
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many requests")
                .remedy("try again in a second"),
        ),
        Ok(()) => None,
    };
    if let Some(problem) = refused {
        return protect(problem.into_response());
    }
    let credentials = match web.sessions.credentials(request.headers(), now_millis()) {
        Ok(credentials) => credentials,
        Err(why) => return protect(Problem::new(StatusCode::UNAUTHORIZED, why).into_response()),
    };
    let renewed = credentials
        .renewed
        .as_deref()
        .and_then(|cookie| HeaderValue::from_str(cookie).ok());
    request.extensions_mut().insert(credentials);
    let mut response = next.run(request).await;
    if let Some(cookie) = renewed {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    protect(response)
}

async fn other_method() -> Response<Body> {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "this route has other methods; see /api/openapi.json",
    )
    .into_response()
}

async fn page(State(web): State<Arc<Web>>, request: Request) -> Response<Body> {
    let path = request.uri().path();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if path.starts_with("/api/") || !is_read {
        return Problem::new(
            StatusCode::NOT_FOUND,
            "no such route; see /api/openapi.json",
        )
        .into_response();
    }
    if path.starts_with("/assets/") {
        return web.assets.file(path);
    }
    let view = path.split('/').nth(1).unwrap_or_default();
    let mut response = web.assets.page();
    if !VIEWS.contains(&view) {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}
