//! Hash-consed expression graph with algebraic simplification.
//!
//! Equal expressions share one node. Each method returns the node of its operation, or a cheaper node of
//! equal value by the laws of relation algebra. `[s]; r` and `r; [s]` become restrictions of rows and
//! columns, which cost a mask instead of a composition.

use super::plan::{Base, GroupId, NameId, Node, NodeId, NodeKind, StatementId};
use super::vocabulary::{ClassFamilies, Membership, Vocabulary};
use std::collections::HashMap;

pub(crate) struct ExpressionGraph<'a> {
    vocabulary: &'a Vocabulary,
    families: &'a ClassFamilies,
    pub(crate) nodes: Vec<Node>,
    pub(crate) origins: Vec<StatementId>,
    pub(crate) names: Vec<String>,
    /// Change frequency of each node's value: the maximum over its operands.
    ranks: Vec<u8>,
    known: HashMap<Node, NodeId>,
    /// The statement that new nodes are made for.
    pub(crate) statement: StatementId,
}

impl<'a> ExpressionGraph<'a> {
    pub(crate) fn new(vocabulary: &'a Vocabulary, families: &'a ClassFamilies) -> Self {
        ExpressionGraph {
            vocabulary,
            families,
            nodes: Vec::new(),
            origins: Vec::new(),
            names: Vec::new(),
            ranks: Vec::new(),
            known: HashMap::new(),
            statement: StatementId(0),
        }
    }

    pub(crate) fn node(&self, id: NodeId) -> Node {
        self.nodes[id.to_index()]
    }

    /// Returns how often the node's value changes during the search.
    pub(crate) fn node_rank(&self, id: NodeId) -> u8 {
        self.ranks[id.to_index()]
    }

    pub(crate) fn intern_node(&mut self, node: Node) -> NodeId {
        if let Some(known) = self.known.get(&node) {
            return *known;
        }
        let rank = match node {
            Node::BaseSet(base) | Node::BaseRelation(base) => {
                self.names.get(base.name.0 as usize).map_or(0, |name| self.vocabulary.rank_of(name))
            }
            // The fixpoint is not known yet, so assume that it changes with every candidate.
            Node::Recursive { .. } => u8::MAX,
            node => node.operand_nodes().map(|operand| self.node_rank(operand)).max().unwrap_or(0),
        };
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.origins.push(self.statement);
        self.ranks.push(rank);
        self.known.insert(node, id);
        id
    }

    fn name_id(&mut self, name: &str) -> NameId {
        let index = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        NameId(index as u32)
    }

    /// A base set or relation.
    pub(crate) fn base_node(&mut self, name: &str, kind: NodeKind) -> NodeId {
        if self.families.absent.iter().any(|absent| absent == name) {
            return match kind {
                NodeKind::Set => self.empty_set(),
                NodeKind::Relation => self.empty_relation(),
            };
        }
        let base = Base { name: self.name_id(name), mask: None };
        self.intern_node(match kind {
            NodeKind::Set => Node::BaseSet(base),
            NodeKind::Relation => Node::BaseRelation(base),
        })
    }

    /// Returns the node of a base that the engine supplies, without applying known emptiness.
    pub(crate) fn leaf_node(&mut self, name: &str, kind: NodeKind, mask: Option<u8>) -> NodeId {
        let base = Base { name: self.name_id(name), mask };
        self.intern_node(match kind {
            NodeKind::Set => Node::BaseSet(base),
            NodeKind::Relation => Node::BaseRelation(base),
        })
    }

    /// A set indexed by storage classes; classes that do not occur are left out, or leave nothing.
    pub(crate) fn indexed_set(&mut self, name: &str, membership: Membership, mask: u8) -> NodeId {
        let present = self.families.all_classes();
        let mask = match membership {
            // An event has only the storage classes that occur in the program. A set that requires
            // an absent class is empty.
            Membership::Any => mask & present,
            Membership::All if mask & !present != 0 => return self.empty_set(),
            Membership::All if mask == 0 => return self.universe_set(),
            Membership::All => mask,
        };
        if mask == 0 || self.families.absent.iter().any(|absent| absent == name) {
            return self.empty_set();
        }
        let base = Base { name: self.name_id(name), mask: Some(mask) };
        self.intern_node(Node::BaseSet(base))
    }

    pub(crate) fn recursive_node(&mut self, group: GroupId, index: u32, kind: NodeKind) -> NodeId {
        self.intern_node(Node::Recursive { group, index, node_kind: kind })
    }

    pub(crate) fn empty_set(&mut self) -> NodeId {
        self.intern_node(Node::EmptySet)
    }

    pub(crate) fn universe_set(&mut self) -> NodeId {
        self.intern_node(Node::Universe)
    }

    pub(crate) fn empty_relation(&mut self) -> NodeId {
        self.intern_node(Node::Empty)
    }

    pub(crate) fn identity_relation(&mut self) -> NodeId {
        self.intern_node(Node::Identity)
    }

    pub(crate) fn full_relation(&mut self) -> NodeId {
        self.intern_node(Node::Full)
    }

    /// The masks of two nodes that are one indexed set of this membership at different classes.
    fn matching_indexed_sets(&self, a: Node, b: Node, wanted: Membership) -> Option<(String, u8, u8)> {
        let (Node::BaseSet(a), Node::BaseSet(b)) = (a, b) else {
            return None;
        };
        let (Some(first), Some(second)) = (a.mask, b.mask) else {
            return None;
        };
        let name = self.names.get(a.name.0 as usize)?;
        (a.name == b.name && self.vocabulary.membership_of(name) == Some(wanted))
            .then(|| (name.clone(), first, second))
    }

    pub(crate) fn set_union(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if let Some((name, first, second)) =
            self.matching_indexed_sets(self.node(a), self.node(b), Membership::Any)
        {
            // `SC(a) | SC(b)` is `SC(a | b)`: an event of any of the classes.
            return self.indexed_set(&name, Membership::Any, first | second);
        }
        match (self.node(a), self.node(b)) {
            _ if a == b => a,
            (Node::EmptySet, _) | (_, Node::Universe) => b,
            (_, Node::EmptySet) | (Node::Universe, _) => a,
            // Operands of commutative operations are sorted, so that `a | b` and `b | a` share one
            // node.
            _ => self.intern_node(Node::SetUnion(a.min(b), a.max(b))),
        }
    }

    pub(crate) fn set_intersection(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if let Some((name, first, second)) =
            self.matching_indexed_sets(self.node(a), self.node(b), Membership::All)
        {
            // `SEM(a) & SEM(b)` is `SEM(a | b)`: an operation with all of the semantics.
            return self.indexed_set(&name, Membership::All, first | second);
        }
        match (self.node(a), self.node(b)) {
            _ if a == b => a,
            (Node::EmptySet, _) | (_, Node::Universe) => a,
            (_, Node::EmptySet) | (Node::Universe, _) => b,
            (_, Node::SetComplement(c)) => self.set_difference(a, c),
            (Node::SetComplement(c), _) => self.set_difference(b, c),
            _ => self.intern_node(Node::SetIntersection(a.min(b), a.max(b))),
        }
    }

    pub(crate) fn set_difference(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.node(a), self.node(b)) {
            _ if a == b => self.empty_set(),
            (_, Node::Universe) => self.empty_set(),
            (Node::EmptySet, _) | (_, Node::EmptySet) => a,
            (Node::Universe, _) => self.set_complement(b),
            (_, Node::SetComplement(c)) => self.set_intersection(a, c),
            _ => self.intern_node(Node::SetDifference(a, b)),
        }
    }

    pub(crate) fn set_complement(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            Node::EmptySet => self.universe_set(),
            Node::Universe => self.empty_set(),
            Node::SetComplement(b) => b,
            _ => self.intern_node(Node::SetComplement(a)),
        }
    }

    pub(crate) fn domain_of(&mut self, r: NodeId) -> NodeId {
        match self.node(r) {
            Node::Empty => self.empty_set(),
            // Reflexive relations relate every event.
            Node::Identity | Node::Full | Node::Star(_) | Node::Optional(_) => self.universe_set(),
            Node::IdentityOn(s) => s,
            Node::Inverse(a) => self.range_of(a),
            // The first step of a path starts where the path does.
            Node::Plus(a) => self.domain_of(a),
            _ => self.intern_node(Node::Domain(r)),
        }
    }

    pub(crate) fn range_of(&mut self, r: NodeId) -> NodeId {
        match self.node(r) {
            Node::Empty => self.empty_set(),
            Node::Identity | Node::Full | Node::Star(_) | Node::Optional(_) => self.universe_set(),
            Node::IdentityOn(s) => s,
            Node::Inverse(a) => self.domain_of(a),
            Node::Plus(a) => self.range_of(a),
            _ => self.intern_node(Node::Range(r)),
        }
    }

    pub(crate) fn identity_on(&mut self, s: NodeId) -> NodeId {
        match self.node(s) {
            Node::EmptySet => self.empty_relation(),
            Node::Universe => self.identity_relation(),
            _ => self.intern_node(Node::IdentityOn(s)),
        }
    }

    pub(crate) fn cartesian_product(&mut self, s: NodeId, t: NodeId) -> NodeId {
        match (self.node(s), self.node(t)) {
            (Node::EmptySet, _) | (_, Node::EmptySet) => self.empty_relation(),
            (Node::Universe, Node::Universe) => self.full_relation(),
            _ => self.intern_node(Node::Product(s, t)),
        }
    }

    pub(crate) fn relation_union(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.node(a), self.node(b)) {
            _ if a == b => a,
            (Node::Empty, _) | (_, Node::Full) => b,
            (_, Node::Empty) | (Node::Full, _) => a,
            (Node::Identity, _) => self.reflexive_closure(b),
            (_, Node::Identity) => self.reflexive_closure(a),
            (Node::IdentityOn(s), Node::IdentityOn(t)) => {
                let both = self.set_union(s, t);
                self.identity_on(both)
            }
            _ => self.intern_node(Node::Union(a.min(b), a.max(b))),
        }
    }

    pub(crate) fn relation_intersection(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.node(a), self.node(b)) {
            _ if a == b => a,
            (Node::Empty, _) | (_, Node::Full) => a,
            (_, Node::Empty) | (Node::Full, _) => b,
            (Node::Identity, Node::Star(_) | Node::Optional(_)) => a,
            (Node::Star(_) | Node::Optional(_), Node::Identity) => b,
            (Node::IdentityOn(s), Node::IdentityOn(t)) => {
                let both = self.set_intersection(s, t);
                self.identity_on(both)
            }
            // `r & (s * t)` is `[s]; r; [t]`: two masks instead of a product and an intersection.
            (_, Node::Product(s, t)) => self.restrict_both_sides(a, s, t),
            (Node::Product(s, t), _) => self.restrict_both_sides(b, s, t),
            (_, Node::Complement(c)) => self.relation_difference(a, c),
            (Node::Complement(c), _) => self.relation_difference(b, c),
            _ => self.intern_node(Node::Intersection(a.min(b), a.max(b))),
        }
    }

    /// `r & (s * t)`
    fn restrict_both_sides(&mut self, r: NodeId, s: NodeId, t: NodeId) -> NodeId {
        let rows = self.restrict_rows(s, r);
        self.restrict_columns(rows, t)
    }

    pub(crate) fn relation_difference(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.node(a), self.node(b)) {
            _ if a == b => self.empty_relation(),
            (_, Node::Full) => self.empty_relation(),
            (Node::Empty, _) | (_, Node::Empty) => a,
            (Node::Full, _) => self.relation_complement(b),
            (_, Node::Complement(c)) => self.relation_intersection(a, c),
            (Node::Identity | Node::IdentityOn(_), Node::Identity | Node::Star(_) | Node::Optional(_)) => {
                self.empty_relation()
            }
            (Node::IdentityOn(s), Node::IdentityOn(t)) => {
                let rest = self.set_difference(s, t);
                self.identity_on(rest)
            }
            // `r \ (r; r+)`
            (_, Node::Sequence(first, rest)) if first == a && self.node(rest) == Node::Plus(a) => {
                self.immediate_relation(a)
            }
            _ => self.intern_node(Node::Difference(a, b)),
        }
    }

    pub(crate) fn relation_complement(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            Node::Empty => self.full_relation(),
            Node::Full => self.empty_relation(),
            Node::Complement(b) => b,
            _ => self.intern_node(Node::Complement(a)),
        }
    }

    pub(crate) fn compose_relations(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.node(a), self.node(b)) {
            (Node::Empty, _) | (_, Node::Identity) => a,
            (_, Node::Empty) | (Node::Identity, _) => b,
            (Node::IdentityOn(s), _) => self.restrict_rows(s, b),
            (_, Node::IdentityOn(t)) => self.restrict_columns(a, t),
            (Node::Star(_), Node::Star(_)) if a == b => a,
            (Node::Star(r), Node::Optional(q)) if r == q => a,
            (Node::Optional(q), Node::Star(r)) if r == q => b,
            (Node::Star(r), Node::Plus(q)) if r == q => b,
            (Node::Plus(q), Node::Star(r)) if r == q => a,
            // `r*; r` is `r+`.
            (Node::Star(r), _) if r == b => self.transitive_closure(r),
            (_, Node::Star(r)) if r == a => self.transitive_closure(r),
            _ => self.intern_node(Node::Sequence(a, b)),
        }
    }

    pub(crate) fn restrict_rows(&mut self, s: NodeId, r: NodeId) -> NodeId {
        match (self.node(s), self.node(r)) {
            (Node::Universe, _) | (_, Node::Empty) => r,
            (Node::EmptySet, _) => self.empty_relation(),
            (_, Node::Identity) => self.identity_on(s),
            (_, Node::IdentityOn(t)) => {
                let both = self.set_intersection(s, t);
                self.identity_on(both)
            }
            (_, Node::Full) => {
                let all = self.universe_set();
                self.cartesian_product(s, all)
            }
            (_, Node::Product(t, u)) => {
                let both = self.set_intersection(s, t);
                self.cartesian_product(both, u)
            }
            (_, Node::RestrictRows(t, inner)) => {
                let both = self.set_intersection(s, t);
                self.restrict_rows(both, inner)
            }
            // One order of the two restrictions: columns outside.
            (_, Node::RestrictColumns(inner, t)) => {
                let rows = self.restrict_rows(s, inner);
                self.restrict_columns(rows, t)
            }
            _ => self.intern_node(Node::RestrictRows(s, r)),
        }
    }

    pub(crate) fn restrict_columns(&mut self, r: NodeId, s: NodeId) -> NodeId {
        match (self.node(r), self.node(s)) {
            (_, Node::Universe) | (Node::Empty, _) => r,
            (_, Node::EmptySet) => self.empty_relation(),
            (Node::Identity, _) => self.identity_on(s),
            (Node::IdentityOn(t), _) => {
                let both = self.set_intersection(s, t);
                self.identity_on(both)
            }
            (Node::Full, _) => {
                let all = self.universe_set();
                self.cartesian_product(all, s)
            }
            (Node::Product(t, u), _) => {
                let both = self.set_intersection(s, u);
                self.cartesian_product(t, both)
            }
            (Node::RestrictColumns(inner, t), _) => {
                let both = self.set_intersection(s, t);
                self.restrict_columns(inner, both)
            }
            _ => self.intern_node(Node::RestrictColumns(r, s)),
        }
    }

    pub(crate) fn inverse_of(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            Node::Empty | Node::Identity | Node::Full | Node::IdentityOn(_) => a,
            Node::Inverse(b) => b,
            Node::Product(s, t) => self.cartesian_product(t, s),
            Node::RestrictRows(s, r) => {
                let turned = self.inverse_of(r);
                self.restrict_columns(turned, s)
            }
            Node::RestrictColumns(r, s) => {
                let turned = self.inverse_of(r);
                self.restrict_rows(s, turned)
            }
            _ => self.intern_node(Node::Inverse(a)),
        }
    }

    pub(crate) fn transitive_closure(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            // These are transitive already: a product that composes with itself is contained in
            // itself.
            Node::Empty
            | Node::Identity
            | Node::Full
            | Node::IdentityOn(_)
            | Node::Product(..)
            | Node::Plus(_)
            | Node::Star(_) => a,
            Node::Optional(b) => self.reflexive_transitive_closure(b),
            _ => self.intern_node(Node::Plus(a)),
        }
    }

    pub(crate) fn reflexive_transitive_closure(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            Node::Empty | Node::Identity | Node::IdentityOn(_) => self.identity_relation(),
            Node::Full | Node::Star(_) => a,
            Node::Plus(b) | Node::Optional(b) => self.reflexive_transitive_closure(b),
            _ => self.intern_node(Node::Star(a)),
        }
    }

    pub(crate) fn reflexive_closure(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            Node::Empty | Node::Identity | Node::IdentityOn(_) => self.identity_relation(),
            Node::Full | Node::Star(_) | Node::Optional(_) => a,
            Node::Plus(b) => self.reflexive_transitive_closure(b),
            _ => self.intern_node(Node::Optional(a)),
        }
    }

    pub(crate) fn immediate_relation(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            Node::Empty => a,
            _ => self.intern_node(Node::Immediate(a)),
        }
    }
}
