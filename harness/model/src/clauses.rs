//! The clauses of the specifications, and the statements of the shipped models that cite them.
//!
//! The list is data: `harness/model/clauses/*.tsv`, one clause per line, paraphrased.

use std::collections::BTreeSet;

use crate::Model;
use crate::cat::CatErrors;
use crate::cat::ast::StatementKind;

/// A specification with listed clauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Specification {
    /// The appendix "Memory Model" of the Vulkan specification.
    Vulkan,
    /// The HSA Platform System Architecture.
    Hsa,
}

impl Specification {
    /// Returns the name of the model of its latest text.
    pub fn model_name(self) -> &'static str {
        match self {
            Specification::Vulkan => "vulkan",
            Specification::Hsa => "hsa",
        }
    }
}

/// The treatment of a specification clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disposition {
    /// Encoded by a statement of a model, or by the engine's events and relations.
    Encoded,
    /// Checked by the parser or the compiler.
    Static,
    /// Constrains devices: their features, memory and scheduling.
    Device,
    /// Not observable by a litmus test.
    NotApplicable,
}

/// A clause of a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Its id, such as `VK-SW-01`.
    pub id: &'static str,
    pub specification: Specification,
    /// The anchor or section of the clause; `None` for text outside the chapter.
    pub anchor: Option<&'static str>,
    /// The treatment of the clause if no statement cites it.
    pub disposition: Disposition,
    /// The sets and relations of the engine that encode it.
    pub engine_names: Vec<&'static str>,
    /// Summary of the clause.
    pub statement: &'static str,
    /// The reason that the clause is not encoded; `None` if it is.
    pub why: Option<&'static str>,
}

/// A statement of a shipped model, with the clauses that it cites.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Citation {
    pub file: String,
    /// Its line there, from 1.
    pub line: u32,
    /// The name that the statement defines, or the axiom's name.
    pub name: String,
    pub clauses: Vec<String>,
}

const CLAUSE_LISTS: [(Specification, &str); 2] = [
    (Specification::Vulkan, include_str!("../clauses/vulkan.tsv")),
    (Specification::Hsa, include_str!("../clauses/hsa.tsv")),
];

/// Returns every clause, in the order of the specifications.
pub fn list_clauses() -> Vec<Clause> {
    CLAUSE_LISTS
        .into_iter()
        .flat_map(|(specification, text)| {
            text.lines().skip(1).filter_map(move |line| parse_clause(specification, line))
        })
        .collect()
}

/// Parses a line of a list; `None` if it is malformed, which a test excludes.
fn parse_clause(specification: Specification, line: &'static str) -> Option<Clause> {
    let mut fields = line.split('\t').map(|field| (field != "-").then_some(field));
    let id = fields.next()??;
    let anchor = fields.next()?;
    let disposition = match fields.next()?? {
        "encoded" => Disposition::Encoded,
        "static" => Disposition::Static,
        "device" => Disposition::Device,
        "not-applicable" => Disposition::NotApplicable,
        _ => return None,
    };
    let engine = fields.next()?.map_or(Vec::new(), |names| names.split(' ').collect());
    let statement = fields.next()??;
    let why = fields.next()?;
    fields.next().is_none().then_some(Clause {
        id,
        specification,
        anchor,
        disposition,
        engine_names: engine,
        statement,
        why,
    })
}

/// Returns every statement of a shipped model that cites a clause, in the order of files and lines.
///
/// A statement of a file that several models include appears once.
///
/// # Errors
///
/// None for the shipped models.
pub fn list_citations() -> Result<Vec<Citation>, CatErrors> {
    let mut found = BTreeSet::new();
    for (name, _) in Model::shipped_models() {
        let Some(model) = Model::shipped(name) else { continue };
        let model = model?;
        let ast = model.ast();
        for statement in ast.statements.iter().filter(|statement| !statement.clauses.is_empty()) {
            let Some(source) = ast.sources.get(usize::from(statement.span.source.0)) else { continue };
            let statement_name = match &statement.kind {
                StatementKind::Let(bindings) => {
                    let names: Vec<&str> =
                        bindings.bindings.iter().map(|binding| binding.name.text.as_str()).collect();
                    names.join(", ")
                }
                StatementKind::Axiom { name, .. } => {
                    name.as_ref().map_or_else(|| "axiom".to_owned(), |name| name.text.clone())
                }
                StatementKind::Procedure(procedure) => procedure.name.text.clone(),
                StatementKind::Call { procedure, name, .. } => {
                    name.as_ref().unwrap_or(procedure).text.clone()
                }
            };
            found.insert(Citation {
                file: file_name(&source.name),
                line: statement.span.line,
                name: statement_name,
                clauses: statement.clauses.clone(),
            });
        }
    }
    Ok(found.into_iter().collect())
}

/// Returns the display name of a shipped source: the model itself has only its name.
pub(crate) fn file_name(source: &str) -> String {
    if source.ends_with(".cat") { source.to_owned() } else { format!("{source}.cat") }
}
