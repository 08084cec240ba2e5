//! Nodes under construction: equal expressions are one node, and the laws of relation algebra are applied on the way.
//!
//! Each method makes the node of its name or a cheaper one of the same value. `[s]; r` and `r; [s]` become restrictions
//! of rows and columns, which cost a mask where composition costs a product.

use super::plan::{Base, GroupId, NameId, Node, NodeId, NodeKind, StatementId};
use super::vocabulary::{Families, Membership, Vocabulary};
use std::collections::HashMap;

pub(crate) struct Graph<'a> {
    vocabulary: &'a Vocabulary,
    families: &'a Families,
    pub(crate) nodes: Vec<Node>,
    pub(crate) origins: Vec<StatementId>,
    pub(crate) names: Vec<String>,
    /// How often each node's value changes: as often as that of its most fleeting operand.
    ranks: Vec<u8>,
    known: HashMap<Node, NodeId>,
    /// The statement that new nodes are made for.
    pub(crate) statement: StatementId,
}

impl<'a> Graph<'a> {
    pub(crate) fn new(vocabulary: &'a Vocabulary, families: &'a Families) -> Self {
        Graph {
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
        self.nodes[id.index()]
    }

    /// How often the node's value changes while executions are searched.
    pub(crate) fn rank(&self, id: NodeId) -> u8 {
        self.ranks[id.index()]
    }

    pub(crate) fn add(&mut self, node: Node) -> NodeId {
        if let Some(known) = self.known.get(&node) {
            return *known;
        }
        let rank = match node {
            Node::BaseSet(base) | Node::BaseRelation(base) => {
                self.names.get(base.name.0 as usize).map_or(0, |name| self.vocabulary.rank(name))
            }
            // What it stands for is not known yet.
            Node::Recursive { .. } => u8::MAX,
            node => node.operands().map(|operand| self.rank(operand)).max().unwrap_or(0),
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
    pub(crate) fn base(&mut self, name: &str, kind: NodeKind) -> NodeId {
        if self.families.absent.iter().any(|absent| absent == name) {
            return match kind {
                NodeKind::Set => self.empty_set(),
                NodeKind::Relation => self.empty(),
            };
        }
        let base = Base { name: self.name_id(name), mask: None };
        self.add(match kind {
            NodeKind::Set => Node::BaseSet(base),
            NodeKind::Relation => Node::BaseRelation(base),
        })
    }

    /// A base set or relation as the engine supplies it, whatever is known of it.
    pub(crate) fn leaf(&mut self, name: &str, kind: NodeKind, mask: Option<u8>) -> NodeId {
        let base = Base { name: self.name_id(name), mask };
        self.add(match kind {
            NodeKind::Set => Node::BaseSet(base),
            NodeKind::Relation => Node::BaseRelation(base),
        })
    }

    /// A set indexed by storage classes; classes that do not occur are left out, or leave nothing.
    pub(crate) fn indexed_set(&mut self, name: &str, membership: Membership, mask: u8) -> NodeId {
        let present = self.families.all_classes();
        let mask = match membership {
            Membership::Any => mask & present,
            Membership::All if mask & !present != 0 => return self.empty_set(),
            Membership::All if mask == 0 => return self.universe(),
            Membership::All => mask,
        };
        if mask == 0 || self.families.absent.iter().any(|absent| absent == name) {
            return self.empty_set();
        }
        let base = Base { name: self.name_id(name), mask: Some(mask) };
        self.add(Node::BaseSet(base))
    }

    pub(crate) fn recursive(&mut self, group: GroupId, index: u32, kind: NodeKind) -> NodeId {
        self.add(Node::Recursive { group, index, kind })
    }

    pub(crate) fn empty_set(&mut self) -> NodeId {
        self.add(Node::EmptySet)
    }

    pub(crate) fn universe(&mut self) -> NodeId {
        self.add(Node::Universe)
    }

    pub(crate) fn empty(&mut self) -> NodeId {
        self.add(Node::Empty)
    }

    pub(crate) fn identity(&mut self) -> NodeId {
        self.add(Node::Identity)
    }

    pub(crate) fn full(&mut self) -> NodeId {
        self.add(Node::Full)
    }

    /// The masks of two nodes that are one indexed set of this membership at different classes.
    fn same_indexed(&self, a: Node, b: Node, wanted: Membership) -> Option<(String, u8, u8)> {
        let (Node::BaseSet(a), Node::BaseSet(b)) = (a, b) else {
            return None;
        };
        let (Some(first), Some(second)) = (a.mask, b.mask) else {
            return None;
        };
        let name = self.names.get(a.name.0 as usize)?;
        (a.name == b.name && self.vocabulary.membership(name) == Some(wanted))
            .then(|| (name.clone(), first, second))
    }

    pub(crate) fn set_union(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if let Some((name, first, second)) = self.same_indexed(self.node(a), self.node(b), Membership::Any) {
            return self.indexed_set(&name, Membership::Any, first | second);
        }
        match (self.node(a), self.node(b)) {
            _ if a == b => a,
            (Node::EmptySet, _) | (_, Node::Universe) => b,
            (_, Node::EmptySet) | (Node::Universe, _) => a,
            _ => self.add(Node::SetUnion(a.min(b), a.max(b))),
        }
    }

    pub(crate) fn set_intersection(&mut self, a: NodeId, b: NodeId) -> NodeId {
        if let Some((name, first, second)) = self.same_indexed(self.node(a), self.node(b), Membership::All) {
            return self.indexed_set(&name, Membership::All, first | second);
        }
        match (self.node(a), self.node(b)) {
            _ if a == b => a,
            (Node::EmptySet, _) | (_, Node::Universe) => a,
            (_, Node::EmptySet) | (Node::Universe, _) => b,
            (_, Node::SetComplement(c)) => self.set_difference(a, c),
            (Node::SetComplement(c), _) => self.set_difference(b, c),
            _ => self.add(Node::SetIntersection(a.min(b), a.max(b))),
        }
    }

    pub(crate) fn set_difference(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.node(a), self.node(b)) {
            _ if a == b => self.empty_set(),
            (_, Node::Universe) => self.empty_set(),
            (Node::EmptySet, _) | (_, Node::EmptySet) => a,
            (Node::Universe, _) => self.set_complement(b),
            (_, Node::SetComplement(c)) => self.set_intersection(a, c),
            _ => self.add(Node::SetDifference(a, b)),
        }
    }

    pub(crate) fn set_complement(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            Node::EmptySet => self.universe(),
            Node::Universe => self.empty_set(),
            Node::SetComplement(b) => b,
            _ => self.add(Node::SetComplement(a)),
        }
    }

    pub(crate) fn domain(&mut self, r: NodeId) -> NodeId {
        match self.node(r) {
            Node::Empty => self.empty_set(),
            Node::Identity | Node::Full | Node::Star(_) | Node::Optional(_) => self.universe(),
            Node::IdentityOn(s) => s,
            Node::Inverse(a) => self.range(a),
            Node::Plus(a) => self.domain(a),
            _ => self.add(Node::Domain(r)),
        }
    }

    pub(crate) fn range(&mut self, r: NodeId) -> NodeId {
        match self.node(r) {
            Node::Empty => self.empty_set(),
            Node::Identity | Node::Full | Node::Star(_) | Node::Optional(_) => self.universe(),
            Node::IdentityOn(s) => s,
            Node::Inverse(a) => self.domain(a),
            Node::Plus(a) => self.range(a),
            _ => self.add(Node::Range(r)),
        }
    }

    pub(crate) fn identity_on(&mut self, s: NodeId) -> NodeId {
        match self.node(s) {
            Node::EmptySet => self.empty(),
            Node::Universe => self.identity(),
            _ => self.add(Node::IdentityOn(s)),
        }
    }

    pub(crate) fn product(&mut self, s: NodeId, t: NodeId) -> NodeId {
        match (self.node(s), self.node(t)) {
            (Node::EmptySet, _) | (_, Node::EmptySet) => self.empty(),
            (Node::Universe, Node::Universe) => self.full(),
            _ => self.add(Node::Product(s, t)),
        }
    }

    pub(crate) fn union(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.node(a), self.node(b)) {
            _ if a == b => a,
            (Node::Empty, _) | (_, Node::Full) => b,
            (_, Node::Empty) | (Node::Full, _) => a,
            (Node::Identity, _) => self.optional(b),
            (_, Node::Identity) => self.optional(a),
            (Node::IdentityOn(s), Node::IdentityOn(t)) => {
                let both = self.set_union(s, t);
                self.identity_on(both)
            }
            _ => self.add(Node::Union(a.min(b), a.max(b))),
        }
    }

    pub(crate) fn intersection(&mut self, a: NodeId, b: NodeId) -> NodeId {
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
            (_, Node::Product(s, t)) => self.within(a, s, t),
            (Node::Product(s, t), _) => self.within(b, s, t),
            (_, Node::Complement(c)) => self.difference(a, c),
            (Node::Complement(c), _) => self.difference(b, c),
            _ => self.add(Node::Intersection(a.min(b), a.max(b))),
        }
    }

    /// `r & (s * t)`
    fn within(&mut self, r: NodeId, s: NodeId, t: NodeId) -> NodeId {
        let rows = self.restrict_rows(s, r);
        self.restrict_columns(rows, t)
    }

    pub(crate) fn difference(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.node(a), self.node(b)) {
            _ if a == b => self.empty(),
            (_, Node::Full) => self.empty(),
            (Node::Empty, _) | (_, Node::Empty) => a,
            (Node::Full, _) => self.complement(b),
            (_, Node::Complement(c)) => self.intersection(a, c),
            (Node::Identity | Node::IdentityOn(_), Node::Identity | Node::Star(_) | Node::Optional(_)) => {
                self.empty()
            }
            (Node::IdentityOn(s), Node::IdentityOn(t)) => {
                let rest = self.set_difference(s, t);
                self.identity_on(rest)
            }
            // `r \ (r; r+)`
            (_, Node::Sequence(first, rest)) if first == a && self.node(rest) == Node::Plus(a) => {
                self.immediate(a)
            }
            _ => self.add(Node::Difference(a, b)),
        }
    }

    pub(crate) fn complement(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            Node::Empty => self.full(),
            Node::Full => self.empty(),
            Node::Complement(b) => b,
            _ => self.add(Node::Complement(a)),
        }
    }

    pub(crate) fn sequence(&mut self, a: NodeId, b: NodeId) -> NodeId {
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
            (Node::Star(r), _) if r == b => self.plus(r),
            (_, Node::Star(r)) if r == a => self.plus(r),
            _ => self.add(Node::Sequence(a, b)),
        }
    }

    pub(crate) fn restrict_rows(&mut self, s: NodeId, r: NodeId) -> NodeId {
        match (self.node(s), self.node(r)) {
            (Node::Universe, _) | (_, Node::Empty) => r,
            (Node::EmptySet, _) => self.empty(),
            (_, Node::Identity) => self.identity_on(s),
            (_, Node::IdentityOn(t)) => {
                let both = self.set_intersection(s, t);
                self.identity_on(both)
            }
            (_, Node::Full) => {
                let all = self.universe();
                self.product(s, all)
            }
            (_, Node::Product(t, u)) => {
                let both = self.set_intersection(s, t);
                self.product(both, u)
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
            _ => self.add(Node::RestrictRows(s, r)),
        }
    }

    pub(crate) fn restrict_columns(&mut self, r: NodeId, s: NodeId) -> NodeId {
        match (self.node(r), self.node(s)) {
            (_, Node::Universe) | (Node::Empty, _) => r,
            (_, Node::EmptySet) => self.empty(),
            (Node::Identity, _) => self.identity_on(s),
            (Node::IdentityOn(t), _) => {
                let both = self.set_intersection(s, t);
                self.identity_on(both)
            }
            (Node::Full, _) => {
                let all = self.universe();
                self.product(all, s)
            }
            (Node::Product(t, u), _) => {
                let both = self.set_intersection(s, u);
                self.product(t, both)
            }
            (Node::RestrictColumns(inner, t), _) => {
                let both = self.set_intersection(s, t);
                self.restrict_columns(inner, both)
            }
            _ => self.add(Node::RestrictColumns(r, s)),
        }
    }

    pub(crate) fn inverse(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            Node::Empty | Node::Identity | Node::Full | Node::IdentityOn(_) => a,
            Node::Inverse(b) => b,
            Node::Product(s, t) => self.product(t, s),
            Node::RestrictRows(s, r) => {
                let turned = self.inverse(r);
                self.restrict_columns(turned, s)
            }
            Node::RestrictColumns(r, s) => {
                let turned = self.inverse(r);
                self.restrict_rows(s, turned)
            }
            _ => self.add(Node::Inverse(a)),
        }
    }

    pub(crate) fn plus(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            Node::Empty
            | Node::Identity
            | Node::Full
            | Node::IdentityOn(_)
            | Node::Product(..)
            | Node::Plus(_)
            | Node::Star(_) => a,
            Node::Optional(b) => self.star(b),
            _ => self.add(Node::Plus(a)),
        }
    }

    pub(crate) fn star(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            Node::Empty | Node::Identity | Node::IdentityOn(_) => self.identity(),
            Node::Full | Node::Star(_) => a,
            Node::Plus(b) | Node::Optional(b) => self.star(b),
            _ => self.add(Node::Star(a)),
        }
    }

    pub(crate) fn optional(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            Node::Empty | Node::Identity | Node::IdentityOn(_) => self.identity(),
            Node::Full | Node::Star(_) | Node::Optional(_) => a,
            Node::Plus(b) => self.star(b),
            _ => self.add(Node::Optional(a)),
        }
    }

    pub(crate) fn immediate(&mut self, a: NodeId) -> NodeId {
        match self.node(a) {
            Node::Empty => a,
            _ => self.add(Node::Immediate(a)),
        }
    }
}
