//! Lists the specification clauses of an explanation, with summaries and links.

use std::collections::BTreeMap;

use model::clauses::{Clause, Specification, list_clauses};
use model::{ExplainedEdge, Explanation, ExplanationAnswer};

/// URL of the Vulkan memory model appendix; append `#` and an anchor.
pub const APPENDIX: &str = "https://docs.vulkan.org/spec/latest/appendices/memorymodel.html";

/// A section of a specification with those of its clauses that an explanation cites.
pub struct SpecificationSection {
    /// Its name in full: an anchor of Vulkan's appendix, a section of HSA's text.
    pub name: String,
    /// URL of the section.
    pub link: Option<String>,
    /// The clauses: id and summary.
    pub clauses: Vec<(&'static str, &'static str)>,
}

/// The sections that an explanation cites, in the order in which it does: those of a broken axiom or a raised flag and of the orders that
/// break it, without their parts.
pub fn cited_sections(explanation: &Explanation) -> Vec<SpecificationSection> {
    let mut ids = Vec::new();
    if let ExplanationAnswer::Forbidden { closest: Some((_, broken)), .. } = &explanation.answer {
        ids.extend(broken.clauses.iter().cloned());
        for edge in &broken.edges {
            collect_clauses(edge, &mut ids);
        }
    }
    if let Some(found) = &explanation.found_race {
        ids.extend(found.flag.clauses.iter().cloned());
    }
    let clauses_by_id: BTreeMap<&str, Clause> =
        list_clauses().into_iter().map(|clause| (clause.id, clause)).collect();
    let mut sections: Vec<SpecificationSection> = Vec::new();
    let mut cited: Vec<&str> = Vec::new();
    for id in &ids {
        let Some(clause) = clauses_by_id.get(id.as_str()).filter(|clause| !cited.contains(&clause.id)) else {
            continue;
        };
        cited.push(clause.id);
        let (name, link) = match (clause.specification, clause.anchor) {
            (Specification::Vulkan, Some(anchor)) => {
                (anchor.to_owned(), Some(format!("{APPENDIX}#{anchor}")))
            }
            (Specification::Vulkan, None) => ("Vulkan".to_owned(), None),
            (Specification::Hsa, section) => {
                (format!("HSA {}", section.unwrap_or_default()).trim_end().to_owned(), None)
            }
        };
        let cited_clause = (clause.id, clause.statement);
        match sections.iter_mut().find(|section| section.name == name) {
            Some(section) => section.clauses.push(cited_clause),
            None => sections.push(SpecificationSection { name, link, clauses: vec![cited_clause] }),
        }
    }
    sections
}

/// Collects the clauses of an order and of its synchronization.
fn collect_clauses(edge: &ExplainedEdge, ids: &mut Vec<String>) {
    ids.extend(edge.clauses.iter().cloned());
    let mut inner: Vec<&ExplainedEdge> = edge.premises.iter().collect();
    while let Some(edge) = inner.pop() {
        if edge.relation == "sw" {
            ids.extend(edge.clauses.iter().cloned());
        }
        inner.extend(&edge.premises);
    }
}
