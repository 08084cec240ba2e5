//! Lists the specification clauses of an explanation, with summaries and links.

use std::collections::BTreeMap;

use model::clauses::{Clause, Specification, clauses};
use model::{ExplainedEdge, Explanation, ExplanationAnswer};

/// URL of the Vulkan memory model appendix; append `#` and an anchor.
pub const APPENDIX: &str = "https://docs.vulkan.org/spec/latest/appendices/memorymodel.html";

/// A section of a specification with those of its clauses that an explanation cites.
pub struct Section {
    /// Its name in full: an anchor of Vulkan's appendix, a section of HSA's text.
    pub name: String,
    /// URL of the section.
    pub link: Option<String>,
    /// The clauses: id and summary.
    pub clauses: Vec<(&'static str, &'static str)>,
}

/// The sections that an explanation cites, in the order in which it does: those of a broken axiom or a raised flag and of the orders that
/// break it, without their parts.
pub fn sections(explanation: &Explanation) -> Vec<Section> {
    let mut ids = Vec::new();
    if let ExplanationAnswer::Forbidden { closest: Some((_, broken)), .. } = &explanation.answer {
        ids.extend(broken.clauses.iter().cloned());
        for edge in &broken.edges {
            orders(edge, &mut ids);
        }
    }
    if let Some(found) = &explanation.race_found {
        ids.extend(found.flag.clauses.iter().cloned());
    }
    let known: BTreeMap<&str, Clause> = clauses().into_iter().map(|clause| (clause.id, clause)).collect();
    let mut sections: Vec<Section> = Vec::new();
    let mut cited: Vec<&str> = Vec::new();
    for id in &ids {
        let Some(clause) = known.get(id.as_str()).filter(|clause| !cited.contains(&clause.id)) else {
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
        let told = (clause.id, clause.statement);
        match sections.iter_mut().find(|section| section.name == name) {
            Some(section) => section.clauses.push(told),
            None => sections.push(Section { name, link, clauses: vec![told] }),
        }
    }
    sections
}

/// The clauses of an order, and of its synchronization.
fn orders(edge: &ExplainedEdge, ids: &mut Vec<String>) {
    ids.extend(edge.clauses.iter().cloned());
    let mut inner: Vec<&ExplainedEdge> = edge.because.iter().collect();
    while let Some(edge) = inner.pop() {
        if edge.relation == "sw" {
            ids.extend(edge.clauses.iter().cloned());
        }
        inner.extend(&edge.because);
    }
}
