//! The definition of a route: path, role, parameters, body, handler, and its description.

use axum::http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::call::{Call, Reply};
use super::orders::Ordered;
use crate::guard::WebRole;
use crate::problem::Problem;

/// The content type of a table of comma-separated values.
pub const CSV: &str = "text/csv";

pub struct Route {
    pub method: Method,
    /// With `{NAME}` for a variable part.
    pub path: &'static str,
    /// The role that a caller needs.
    pub role: WebRole,
    /// Summary in the description, one line.
    pub about: &'static str,
    pub query: &'static [QueryField],
    /// Parameters of a route that returns a page of a list; they follow those of `query`.
    pub page: Option<[QueryField; 5]>,
    pub takes: Option<Body>,
    pub gives: Answer,
    pub answer: Handler,
    /// Runs on the async thread, so that it answers even while all blocking threads are busy.
    pub is_instant: bool,
}

impl Route {
    const fn read(
        path: &'static str,
        about: &'static str,
        gives: Answer,
        answer: Handler,
    ) -> Route {
        let method = Method::GET;
        let role = WebRole::View;
        Route {
            method,
            path,
            role,
            about,
            query: &[],
            page: None,
            takes: None,
            gives,
            answer,
            is_instant: false,
        }
    }

    /// Runs the handler on the async thread; it must not read from the source.
    pub const fn at_once(mut self) -> Route {
        self.is_instant = true;
        self
    }

    /// Sets the query parameters.
    pub const fn asking(mut self, query: &'static [QueryField]) -> Route {
        self.query = query;
        self
    }

    /// Sets the query parameters of a route that returns a page of a list.
    pub const fn listing(mut self, page: [QueryField; 5], query: &'static [QueryField]) -> Route {
        self.page = Some(page);
        self.query = query;
        self.or_as(CSV)
    }

    /// Adds a content type to which the handler switches if the client accepts it.
    pub const fn or_as(mut self, kind: &'static str) -> Route {
        if let Answer::Json(schema) = self.gives {
            self.gives = Answer::JsonOr(schema, kind);
        }
        self
    }

    /// Allows calls without credentials.
    pub const fn for_anybody(mut self) -> Route {
        self.role = WebRole::Nobody;
        self
    }

    /// Allows only calls with the role `operate`.
    pub const fn for_operators(mut self) -> Route {
        self.role = WebRole::Operate;
        self
    }

    /// All query parameters; a route that reads also has `recording`.
    pub fn queries(&self) -> impl Iterator<Item = &QueryField> {
        let is_read = self.method == Method::GET && self.role == WebRole::View;
        self.query
            .iter()
            .chain(self.page.iter().flatten())
            .chain(is_read.then_some(&RECORDING))
    }

    /// Whether the route has an effect on the cluster, so that a retry must not run it twice.
    pub fn is_order(&self) -> bool {
        self.method == Method::POST && self.role == WebRole::Operate
    }
}

/// Selects one of several recordings of the server.
pub const RECORDING: QueryField = field(
    "recording",
    "name of a recording; see /api/nap/v1/recordings",
);

/// A query parameter.
#[derive(Debug, Clone, Copy)]
pub struct QueryField {
    pub name: &'static str,
    pub about: &'static str,
    pub form: Form,
}

/// The values that a query parameter can have.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    Text,
    /// A number within these bounds, inclusive.
    Number(u64, u64),
    OneOf(&'static [&'static str]),
    /// Comma-separated words of the list.
    SomeOf(&'static [&'static str]),
    /// Comma-separated field names, each with an optional leading `-`.
    Sort(fn() -> Vec<&'static str>),
    /// Comma-separated field names.
    Fields(fn() -> Vec<String>),
}

pub type Handler = fn(&Call<'_>) -> Result<Reply, Problem>;

/// The schema of a request body.
pub type Body = fn(&mut SchemaGenerator) -> Schema;

/// The content of a response.
#[derive(Clone, Copy)]
pub enum Answer {
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// JSON or this content type.
    JsonOr(fn(&mut SchemaGenerator) -> Schema, &'static str),
    /// This content type, without a schema.
    Other(&'static str),
}

pub const fn field(name: &'static str, about: &'static str) -> QueryField {
    QueryField {
        name,
        about,
        form: Form::Text,
    }
}

pub const fn number(name: &'static str, about: &'static str, from: u64, until: u64) -> QueryField {
    QueryField {
        name,
        about,
        form: Form::Number(from, until),
    }
}

pub const fn one_of(
    name: &'static str,
    about: &'static str,
    words: &'static [&'static str],
) -> QueryField {
    QueryField {
        name,
        about,
        form: Form::OneOf(words),
    }
}

pub const fn some_of(
    name: &'static str,
    about: &'static str,
    words: &'static [&'static str],
) -> QueryField {
    QueryField {
        name,
        about,
        form: Form::SomeOf(words),
    }
}

/// A route that returns JSON.
pub const fn get<Gives: JsonSchema>(
    path: &'static str,
    about: &'static str,
    answer: Handler,
) -> Route {
    Route::read(path, about, json::<Gives>(), answer)
}

/// A route that returns another content type.
pub const fn get_as(
    kind: &'static str,
    path: &'static str,
    about: &'static str,
    answer: Handler,
) -> Route {
    Route::read(path, about, Answer::Other(kind), answer)
}

pub const fn post(
    path: &'static str,
    about: &'static str,
    takes: Option<Body>,
    gives: Answer,
    answer: Handler,
) -> Route {
    Route {
        method: Method::POST,
        path,
        role: WebRole::Operate,
        about,
        query: &[],
        page: None,
        takes,
        gives,
        answer,
        is_instant: false,
    }
}

pub const fn order<Takes: JsonSchema>(
    path: &'static str,
    about: &'static str,
    answer: Handler,
) -> Route {
    post(path, about, takes::<Takes>(), json::<Ordered>(), answer)
}

pub const fn json<T: JsonSchema>() -> Answer {
    Answer::Json(|generator| generator.subschema_for::<T>())
}

pub const fn takes<T: JsonSchema>() -> Option<Body> {
    Some(|generator| generator.subschema_for::<T>())
}
