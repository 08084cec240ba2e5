//! Searches for minimal inputs with a property, independent of what the inputs are.
//!
//! | function | algorithm | result |
//! |---|---|---|
//! | [`remove_chunks`] | one pass of removals | minimal for chunks of 1 if the property is monotone |
//! | [`ddmin`] | delta debugging: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (TSE 2002), with its complements only | 1-minimal: no element can be removed |
//! | [`descend`] | first-improvement local search | no candidate is better |
//! | [`find_set_of_size`] | exhaustive, in lexicographic order | the smallest set, if the sizes are tried in order |
//!
//! The property is a closure that may be slow, such as the run of a compiler. Its error ends a search; the best
//! input so far remains.

/// Removes each chunk of `size` elements in turn if the others have the property. Returns true if some were
/// removed.
///
/// # Errors
/// The first error of `holds`.
pub fn remove_chunks<T: Clone, E>(
    elements: &mut Vec<T>,
    size: usize,
    mut holds: impl FnMut(&[T]) -> Result<bool, E>,
) -> Result<bool, E> {
    let mut start = 0;
    let mut has_removed = false;
    while size > 0 && start < elements.len() {
        let mut fewer = elements.clone();
        fewer.drain(start..(start + size).min(elements.len()));
        if holds(&fewer)? {
            *elements = fewer;
            has_removed = true;
        } else {
            start += size;
        }
    }
    Ok(has_removed)
}

/// Removes halves, quarters and so on of the elements, down to single ones, until none can be removed.
///
/// # Errors
/// The first error of `holds`.
pub fn ddmin<T: Clone, E>(
    elements: &mut Vec<T>,
    mut holds: impl FnMut(&[T]) -> Result<bool, E>,
) -> Result<(), E> {
    let mut size = elements.len().div_ceil(2);
    while size > 0 && elements.len() > 1 {
        let has_removed = remove_chunks(elements, size, &mut holds)?;
        if size > 1 || !has_removed {
            size /= 2;
        }
    }
    Ok(())
}

/// Replaces `best` by the first candidate that `accept` improves to, until it accepts none.
///
/// # Errors
/// The first error of `accept`.
pub fn descend<S, C, E>(
    best: &mut S,
    candidates: impl Fn(&S) -> Vec<C>,
    mut accept: impl FnMut(C, &S) -> Result<Option<S>, E>,
) -> Result<(), E> {
    'improved: loop {
        for candidate in candidates(best) {
            if let Some(better) = accept(candidate, best)? {
                *best = better;
                continue 'improved;
            }
        }
        return Ok(());
    }
}

/// Returns the first accepted set of `size` of the numbers below `count`.
///
/// # Errors
/// The first error of `accept`.
pub fn find_set_of_size<T, E>(
    count: usize,
    size: usize,
    mut accept: impl FnMut(&[usize]) -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let mut chosen: Vec<usize> = (0..size).collect();
    while chosen.last().is_some_and(|last| *last < count) {
        if let Some(found) = accept(&chosen)? {
            return Ok(Some(found));
        }
        // The next combination in lexicographic order.
        let Some(position) = (0..size).rev().find(|at| chosen[*at] + size - at < count) else { break };
        chosen[position] += 1;
        for at in position + 1..size {
            chosen[at] = chosen[at - 1] + 1;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn ddmin_leaves_the_elements_that_matter() {
        let mut numbers: Vec<u32> = (0..20).collect();
        let mut runs = 0;
        let Ok(()) = ddmin(&mut numbers, |rest| {
            runs += 1;
            Ok::<_, Infallible>(rest.contains(&3) && rest.contains(&17))
        });
        assert_eq!(numbers, [3, 17]);
        assert!(runs < 40, "{runs}");
    }

    #[test]
    fn an_error_leaves_the_best_input() {
        let mut numbers: Vec<u32> = (0..4).collect();
        let result = remove_chunks(&mut numbers, 1, |rest| if rest.len() < 3 { Err(()) } else { Ok(true) });
        assert_eq!((result, numbers), (Err(()), vec![1, 2, 3]));
    }

    #[test]
    fn a_descent_ends_where_no_candidate_is_better() {
        let mut number = 100_u32;
        let Ok(()) = descend(
            &mut number,
            |best| vec![best / 2, best - 1],
            |candidate, _| Ok::<_, Infallible>(Some(candidate).filter(|smaller| *smaller >= 13)),
        );
        assert_eq!(number, 13);
    }

    #[test]
    fn sets_of_a_size_are_all_tried() {
        let mut tried = Vec::new();
        let none = find_set_of_size(4, 2, |chosen| {
            tried.push(chosen.to_vec());
            Ok::<_, Infallible>(None::<()>)
        });
        assert_eq!(none, Ok(None));
        assert_eq!(tried, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert_eq!(find_set_of_size(1, 2, |_| Err::<Option<()>, _>(())), Ok(None));
    }
}
