//! Strongly connected components of a directed graph: Tarjan, "Depth-first search and linear graph algorithms"
//! (1972).

use std::collections::{BTreeMap, BTreeSet};

/// Returns the components of more than one node, in the order of their first node.
pub fn find_components<'n>(edges: &BTreeSet<(&'n str, &'n str)>) -> Vec<BTreeSet<&'n str>> {
    let mut successors: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in edges {
        successors.entry(from).or_default().push(to);
    }
    let mut search = ComponentSearch {
        successors: &successors,
        visits: BTreeMap::new(),
        open: Vec::new(),
        found: Vec::new(),
    };
    for node in successors.keys() {
        if !search.visits.contains_key(node) {
            search.visit(node);
        }
    }
    let found = search.found.into_iter().filter(|component| component.len() > 1);
    let mut found: Vec<BTreeSet<_>> = found.map(|component| component.into_iter().collect()).collect();
    found.sort();
    found
}

/// The state of a node in the search.
#[derive(Clone, Copy)]
struct Visit {
    /// The number of nodes visited before.
    order: usize,
    /// True until the component of the node is complete.
    is_open: bool,
}

struct ComponentSearch<'g, 'n> {
    successors: &'g BTreeMap<&'n str, Vec<&'n str>>,
    visits: BTreeMap<&'n str, Visit>,
    open: Vec<&'n str>,
    found: Vec<Vec<&'n str>>,
}

impl<'n> ComponentSearch<'_, 'n> {
    /// Visits a node and its descendants; returns the smallest order of an open node that it reaches.
    fn visit(&mut self, node: &'n str) -> usize {
        let order = self.visits.len();
        let mut low = order;
        self.visits.insert(node, Visit { order, is_open: true });
        self.open.push(node);
        for next in self.successors.get(node).into_iter().flatten() {
            let reached = match self.visits.get(next) {
                None => self.visit(next),
                Some(visit) if visit.is_open => visit.order,
                Some(_) => continue,
            };
            low = low.min(reached);
        }
        if low == order {
            let start = self.open.iter().position(|open| *open == node).unwrap_or_default();
            let component = self.open.split_off(start);
            for member in &component {
                if let Some(visit) = self.visits.get_mut(member) {
                    visit.is_open = false;
                }
            }
            self.found.push(component);
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_the_nodes_that_reach_each_other() {
        let edges =
            [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("e", "f"), ("x", "a")];
        assert_eq!(
            find_components(&edges.into()),
            [BTreeSet::from(["a", "b", "c"]), BTreeSet::from(["d", "e"])]
        );
    }

    #[test]
    fn two_paths_to_one_node_are_not_a_cycle() {
        let edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("b", "c")];
        assert_eq!(find_components(&edges.into()), Vec::<BTreeSet<&str>>::new());
    }
}
