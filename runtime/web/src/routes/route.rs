//! A route: what can be asked for, by whom, and what stands in the description of it.
//!
//! Owns this form. Does not own which routes there are (`table`).

use axum::http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::call::{Call, Reply};
use super::orders::Ordered;
use crate::guard::WebRole;
use crate::problem::Problem;

/// One thing that can be asked for.
pub struct Route {
    pub method: Method,
    /// With `{NAME}` for what differs.
    pub path: &'static str,
    /// There is no default.
    pub role: WebRole,
    /// What it answers, in a line.
    pub about: &'static str,
    pub query: &'static [QueryField],
    pub takes: Option<Body>,
    pub gives: Answer,
    pub answer: Answering,
    /// Answered at once, without a thread that others may hold.
    pub is_instant: bool,
}

impl Route {
    const fn read(path: &'static str, about: &'static str, gives: Answer, answer: Answering) -> Route {
        let (method, role) = (Method::GET, WebRole::View);
        Route { method, path, role, about, query: &[], takes: None, gives, answer, is_instant: false }
    }

    /// This one, which asks no source, answered at once.
    pub const fn at_once(mut self) -> Route {
        self.is_instant = true;
        self
    }

    /// This one with a query.
    pub const fn asking(mut self, query: &'static [QueryField]) -> Route {
        self.query = query;
        self
    }

    /// This one as another kind as well, for whoever accepts that.
    pub const fn or_as(mut self, kind: &'static str) -> Route {
        if let Answer::Json(schema) = self.gives {
            self.gives = Answer::JsonOr(schema, kind);
        }
        self
    }

    /// This one for who has no role yet.
    pub const fn for_anybody(mut self) -> Route {
        self.role = WebRole::Nobody;
        self
    }

    /// All that its query may say: of what is read, also of which recording.
    pub fn queries(&self) -> impl Iterator<Item = &QueryField> {
        let is_of_one = self.method == Method::GET && self.role == WebRole::View;
        self.query.iter().chain(is_of_one.then_some(&RECORDING))
    }

    /// Whether it changes something that runs, and may therefore not be done twice by mistake.
    pub fn is_order(&self) -> bool {
        self.method == Method::POST && self.role == WebRole::Operate
    }
}

/// Which of the histories is meant, where a server shows several.
pub const RECORDING: QueryField = field("recording", "of this recording; see /api/nap/v1/recordings");

/// Something a query may say.
#[derive(Debug, Clone, Copy)]
pub struct QueryField {
    pub name: &'static str,
    pub about: &'static str,
    pub form: Form,
}

/// What stands behind the `=`.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    Text,
    /// From the first number to the second.
    Number(u64, u64),
    OneOf(&'static [&'static str]),
    /// Some of these, with commas between them.
    SomeOf(&'static [&'static str]),
    /// Likewise, each with or without `-` before it.
    Sort(fn() -> Vec<&'static str>),
    Fields(fn() -> Vec<String>),
}

pub type Answering = fn(&Call<'_>) -> Result<Reply, Problem>;

/// The form of a body.
pub type Body = fn(&mut SchemaGenerator) -> Schema;

/// The form of an answer.
#[derive(Clone, Copy)]
pub enum Answer {
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Likewise, or this kind.
    JsonOr(fn(&mut SchemaGenerator) -> Schema, &'static str),
    /// Of this kind, described elsewhere.
    Other(&'static str),
}

pub const fn field(name: &'static str, about: &'static str) -> QueryField {
    QueryField { name, about, form: Form::Text }
}

pub const fn number(name: &'static str, about: &'static str, from: u64, until: u64) -> QueryField {
    QueryField { name, about, form: Form::Number(from, until) }
}

pub const fn one_of(name: &'static str, about: &'static str, words: &'static [&'static str]) -> QueryField {
    QueryField { name, about, form: Form::OneOf(words) }
}

pub const fn some_of(name: &'static str, about: &'static str, words: &'static [&'static str]) -> QueryField {
    QueryField { name, about, form: Form::SomeOf(words) }
}

/// What is read, in JSON.
pub const fn get<Gives: JsonSchema>(path: &'static str, about: &'static str, answer: Answering) -> Route {
    Route::read(path, about, json::<Gives>(), answer)
}

/// Likewise, as another kind.
pub const fn get_as(kind: &'static str, path: &'static str, about: &'static str, answer: Answering) -> Route {
    Route::read(path, about, Answer::Other(kind), answer)
}

pub const fn post(
    path: &'static str,
    about: &'static str,
    takes: Option<Body>,
    gives: Answer,
    answer: Answering,
) -> Route {
    Route {
        method: Method::POST,
        path,
        role: WebRole::Operate,
        about,
        query: &[],
        takes,
        gives,
        answer,
        is_instant: false,
    }
}

pub const fn order<Takes: JsonSchema>(path: &'static str, about: &'static str, answer: Answering) -> Route {
    post(path, about, takes::<Takes>(), json::<Ordered>(), answer)
}

pub const fn json<T: JsonSchema>() -> Answer {
    Answer::Json(|generator| generator.subschema_for::<T>())
}

pub const fn takes<T: JsonSchema>() -> Option<Body> {
    Some(|generator| generator.subschema_for::<T>())
}
