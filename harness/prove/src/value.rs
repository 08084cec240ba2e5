//! Values of an invocation: trees of terms, and pointers.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::term::{TermArena, TermId};

/// A local variable: its frame and id. Module variables belong to frame 0.
pub(crate) type LocalKey = (usize, u32);

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Scalar(TermId),
    Composite(Rc<[Value]>),
    Pointer(Rc<Pointer>),
    /// A handle, or a value that is too large or of no form that is followed.
    Opaque,
}

/// An image or a sampled image, by variable and index in its array.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Descriptor {
    pub variable: u32,
    pub element: Option<TermId>,
    /// True if a declaration makes its accesses coherent.
    pub is_coherent: bool,
}

/// A pointer. Types are of what it points to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pointer {
    /// Memory of the invocation.
    Local { key: LocalKey, path: Vec<TermId>, ty: u32 },
    /// Memory with bytes: a descriptor, or a variable in workgroup memory.
    ///
    /// An access is in bounds only if the condition holds: no index of an array behind other members is negative.
    Memory { descriptor: Descriptor, offset: TermId, ty: u32, in_bounds: Option<TermId> },
    /// An image variable.
    Image { descriptor: Descriptor },
    /// A texel.
    Texel { descriptor: Descriptor, coordinates: Vec<TermId>, ty: u32 },
    /// One of two pointers, the first if the condition holds.
    Choice { condition: TermId, yes: Rc<Pointer>, no: Rc<Pointer> },
}

/// The contents of local variables.
pub(crate) type State = BTreeMap<LocalKey, Value>;

impl Value {
    pub fn scalar(&self) -> Option<TermId> {
        match self {
            Value::Scalar(term) => Some(*term),
            Value::Composite(_) | Value::Pointer(_) | Value::Opaque => None,
        }
    }

    /// Appends the terms of a value.
    pub fn collect_terms(&self, into: &mut Vec<TermId>) {
        match self {
            Value::Scalar(term) => into.push(*term),
            Value::Composite(parts) => parts.iter().for_each(|part| part.collect_terms(into)),
            Value::Pointer(pointer) => pointer.collect_terms(into),
            Value::Opaque => {}
        }
    }

    pub fn terms(&self) -> Vec<TermId> {
        let mut all = Vec::new();
        self.collect_terms(&mut all);
        all
    }

    /// Returns true if a part of it has no term.
    pub fn is_partly_opaque(&self) -> bool {
        match self {
            Value::Scalar(_) | Value::Pointer(_) => false,
            Value::Composite(parts) => parts.iter().any(Value::is_partly_opaque),
            Value::Opaque => true,
        }
    }

    /// Returns the value with each term replaced.
    pub fn map_terms(&self, map: &mut dyn FnMut(TermId) -> TermId) -> Value {
        match self {
            Value::Scalar(term) => Value::Scalar(map(*term)),
            Value::Composite(parts) => {
                Value::Composite(parts.iter().map(|part| part.map_terms(map)).collect())
            }
            Value::Pointer(pointer) => Value::Pointer(Rc::new(pointer.map_terms(map))),
            Value::Opaque => Value::Opaque,
        }
    }

    /// Returns true if two values differ in their terms only.
    pub fn has_shape_of(&self, other: &Value) -> bool {
        let mut terms = other.terms().into_iter();
        self.terms().len() == terms.len()
            && *other == self.map_terms(&mut |term| terms.next().unwrap_or(term))
    }

    /// Returns this value if a condition holds, and another one if not; what differs in its form is opaque.
    pub fn select(&self, other: &Value, condition: TermId, terms: &mut TermArena) -> Value {
        if self.has_shape_of(other) {
            let mut others = other.terms().into_iter();
            return self.map_terms(&mut |term| {
                others.next().map_or(term, |other| terms.select(condition, term, other))
            });
        }
        match (self, other) {
            (Value::Composite(a), Value::Composite(b)) if a.len() == b.len() => {
                Value::Composite(a.iter().zip(b.iter()).map(|(a, b)| a.select(b, condition, terms)).collect())
            }
            (Value::Pointer(yes), Value::Pointer(no)) => {
                let (yes, no) = (yes.clone(), no.clone());
                Value::Pointer(Rc::new(Pointer::Choice { condition, yes, no }))
            }
            _ => Value::Opaque,
        }
    }
}

impl Pointer {
    fn collect_terms(&self, into: &mut Vec<TermId>) {
        match self {
            Pointer::Local { path, .. } => into.extend(path),
            Pointer::Memory { descriptor, offset, in_bounds, .. } => {
                into.extend(in_bounds);
                into.extend(descriptor.element);
                into.push(*offset);
            }
            Pointer::Image { descriptor } => into.extend(descriptor.element),
            Pointer::Texel { descriptor, coordinates, .. } => {
                into.extend(descriptor.element);
                into.extend(coordinates);
            }
            Pointer::Choice { condition, yes, no } => {
                into.push(*condition);
                yes.collect_terms(into);
                no.collect_terms(into);
            }
        }
    }

    fn map_terms(&self, map: &mut dyn FnMut(TermId) -> TermId) -> Pointer {
        let mut pointer = self.clone();
        let (descriptor, terms): (Option<&mut Descriptor>, &mut [TermId]) = match &mut pointer {
            Pointer::Local { path, .. } => (None, path),
            Pointer::Memory { descriptor, offset, in_bounds, .. } => {
                *in_bounds = in_bounds.map(&mut *map);
                (Some(descriptor), std::slice::from_mut(offset))
            }
            Pointer::Image { descriptor } => (Some(descriptor), &mut []),
            Pointer::Texel { descriptor, coordinates, .. } => (Some(descriptor), coordinates),
            Pointer::Choice { condition, yes, no } => {
                *condition = map(*condition);
                (*yes, *no) = (Rc::new(yes.map_terms(map)), Rc::new(no.map_terms(map)));
                (None, &mut [])
            }
        };
        if let Some(element) = descriptor.and_then(|descriptor| descriptor.element.as_mut()) {
            *element = map(*element);
        }
        terms.iter_mut().for_each(|term| *term = map(*term));
        pointer
    }

    /// Returns the type of what it points to; `None` for an image.
    pub fn pointee(&self) -> Option<u32> {
        match self {
            Pointer::Local { ty, .. } | Pointer::Memory { ty, .. } | Pointer::Texel { ty, .. } => Some(*ty),
            Pointer::Image { .. } => None,
            Pointer::Choice { yes, .. } => yes.pointee(),
        }
    }
}
