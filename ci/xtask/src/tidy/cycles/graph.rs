//! Strongly connected components of a directed graph: the nodes that reach each other.

use std::collections::{BTreeMap, BTreeSet};

/// Returns the components of more than one node, in the order of their first node.
pub fn find_components<'n>(edges: &BTreeSet<(&'n str, &'n str)>) -> Vec<BTreeSet<&'n str>> {
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, _) in edges {
        let mut found = BTreeSet::new();
        let mut pending = vec![*from];
        while let Some(node) = pending.pop() {
            let successors = edges.range((node, "")..).take_while(|(source, _)| *source == node);
            pending.extend(successors.map(|(_, to)| *to).filter(|to| found.insert(*to)));
        }
        reached.insert(from, found);
    }
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|found| found.contains(to));
    let component_of = |node: &&'n str| -> BTreeSet<&'n str> {
        let nodes = reached.keys().copied();
        nodes.filter(|other| other == node || reaches(node, other) && reaches(other, node)).collect()
    };
    let components: BTreeSet<_> = reached.keys().map(component_of).collect();
    components.into_iter().filter(|component| component.len() > 1).collect()
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
