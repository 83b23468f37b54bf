//! A route: what can be asked for, by whom, and what stands in the description of it.
//!
//! Owns this form. Does not own which routes there are (`table`).

use axum::http::Method;
use schemars::{Schema, SchemaGenerator};

use super::call::{Call, Reply};
use super::orders::Ordered;
use crate::guard::WebRole;
use crate::problem::Problem;

/// One thing that can be asked for.
pub struct Route {
    pub method: Method,
    pub dialect: Dialect,
    /// With `{NAME}` for what differs.
    pub path: &'static str,
    /// There is no default.
    pub role: WebRole,
    /// What it answers, in a line.
    pub about: &'static str,
    pub query: &'static [QueryField],
    pub takes: Option<Body>,
    pub gives: Answer,
    pub answer: fn(&Call<'_>) -> Result<Reply, Problem>,
}

impl Route {
    /// All that its query may say: of what is read, also of which recording.
    pub fn queries(&self) -> impl Iterator<Item = &QueryField> {
        let is_of_one =
            self.method == Method::GET && self.role == WebRole::View && self.dialect == Dialect::Native;
        self.query.iter().chain(is_of_one.then_some(&RECORDING))
    }

    /// Whether it changes something that runs, and may therefore not be done twice by mistake.
    pub fn is_order(&self) -> bool {
        self.method == Method::POST && self.role == WebRole::Operate
    }
}

/// Which of the histories is meant, where a server shows several.
pub const RECORDING: QueryField = field("recording", "of this recording; see /api/nap/v1/recordings");

/// How something is asked and refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// A query may say nothing that is not known; problems are RFC 9457's.
    Native,
    /// Scripts of others say much that means nothing here; problems are Hadoop's `RemoteException`.
    Hadoop,
}

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

/// The form of a body.
pub type Body = fn(&mut SchemaGenerator) -> Schema;

/// The form of an answer.
#[derive(Clone, Copy)]
pub enum Answer {
    Json(fn(&mut SchemaGenerator) -> Schema),
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

pub const fn get(
    path: &'static str,
    role: WebRole,
    about: &'static str,
    query: &'static [QueryField],
    gives: Answer,
    answer: fn(&Call<'_>) -> Result<Reply, Problem>,
) -> Route {
    Route {
        method: Method::GET,
        dialect: Dialect::Native,
        path,
        role,
        about,
        query,
        takes: None,
        gives,
        answer,
    }
}

pub const fn order(
    path: &'static str,
    about: &'static str,
    takes: Body,
    answer: fn(&Call<'_>) -> Result<Reply, Problem>,
) -> Route {
    let gives = Answer::Json(|generator| generator.subschema_for::<Ordered>());
    Route {
        method: Method::POST,
        dialect: Dialect::Native,
        path,
        role: WebRole::Operate,
        about,
        query: &[],
        takes: Some(takes),
        gives,
        answer,
    }
}

pub const fn json<T: schemars::JsonSchema>() -> Answer {
    Answer::Json(|generator| generator.subschema_for::<T>())
}
