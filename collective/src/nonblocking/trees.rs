//! Down and up binomial trees: what is below a place is as many places on from it as its lowest bit says.

use super::Combiner;
use super::talk::{Heard, Talk};
use bytemuck::Pod;
use tasuki_core::base::Result;

/// A tree as one member has it, whose place is counted from the root on.
struct Tree {
    root: usize,
    place: usize,
    size: usize,
}

impl Tree {
    fn of(talk: &Talk, root: usize) -> Tree {
        Tree { root, place: (talk.place + talk.size - root) % talk.size, size: talk.size }
    }

    /// How many places its part has at most: a power of two.
    fn span(&self) -> usize {
        if self.place == 0 { self.size.next_power_of_two() } else { 1 << self.place.trailing_zeros() }
    }

    /// How many there are.
    fn below(&self) -> usize {
        self.span().min(self.size - self.place)
    }

    fn parent(&self) -> Option<usize> {
        (self.place > 0).then(|| self.member(self.place - self.span()))
    }

    /// How far its children are, nearest first, how many places the part of each has, and which member it is.
    fn children(&self) -> impl DoubleEndedIterator<Item = (usize, usize, usize)> + Clone + use<> {
        let Tree { root, place, size } = *self;
        (0..self.span().ilog2())
            .map(|level| 1 << level)
            .filter(move |&far| place + far < size)
            .map(move |far| (far, far.min(size - place - far), (root + place + far) % size))
    }

    fn member(&self, place: usize) -> usize {
        (self.root + place) % self.size
    }

    /// What later messages take is done.
    fn prepare(&self, talk: &Talk) -> Result<()> {
        let mut all = self.children().map(|(_, _, member)| member).chain(self.parent());
        all.try_for_each(|member| talk.prepare(member))
    }
}

pub(super) async fn bcast<T: Pod + Send>(talk: &Talk, mut values: Vec<T>, root: usize) -> Result<Vec<T>> {
    let tree = Tree::of(talk, root);
    tree.prepare(talk)?;
    if let Some(parent) = tree.parent() {
        let heard = talk.hear::<T>(values.len(), parent)?;
        talk.heard(heard, &mut values).await?;
    }
    // The farthest first: it has the most to tell.
    let sent = tree.children().rev().map(|(_, _, child)| talk.send(&values, child));
    let sent: Vec<_> = sent.collect::<Result<_>>()?;
    talk.sent(sent).await?;
    Ok(values)
}

/// To the first member, so that neighbours are combined first, and from there to the root.
pub(super) async fn reduce<T: Pod + Send>(
    talk: &Talk,
    mut values: Vec<T>,
    mut combine: Combiner<T>,
    root: usize,
) -> Result<Option<Vec<T>>> {
    let last = (root != 0 && talk.place == root).then(|| talk.hear::<T>(values.len(), 0)).transpose()?;
    if root != 0 && talk.place == 0 {
        talk.prepare(root)?;
    }
    reduce_to_first(talk, &mut values, &mut combine).await?;
    if root != 0 && talk.place == 0 {
        talk.sent([talk.send(&values, root)?]).await?;
    }
    if let Some(last) = last {
        talk.heard(last, &mut values).await?;
    }
    Ok((talk.place == root).then_some(values))
}

pub(super) async fn allreduce<T: Pod + Send>(
    talk: &Talk,
    mut values: Vec<T>,
    mut combine: Combiner<T>,
) -> Result<Vec<T>> {
    reduce_to_first(talk, &mut values, &mut combine).await?;
    bcast(talk, values, 0).await
}

async fn reduce_to_first<T: Pod + Send>(
    talk: &Talk,
    values: &mut [T],
    combine: &mut Combiner<T>,
) -> Result<()> {
    let tree = Tree::of(talk, 0);
    tree.prepare(talk)?;
    let heard = hear_children::<T>(talk, &tree, |_| values.len())?;
    let mut part = values.to_vec();
    for heard in heard {
        talk.heard(heard, &mut part).await?;
        combine(values, &part);
    }
    match tree.parent() {
        Some(parent) => talk.sent([talk.send(values, parent)?]).await,
        None => Ok(()),
    }
}

pub(super) async fn gather<T: Pod + Send>(
    talk: &Talk,
    values: Vec<T>,
    root: usize,
) -> Result<Option<Vec<T>>> {
    let (tree, count) = (Tree::of(talk, root), values.len());
    tree.prepare(talk)?;
    let heard = hear_children::<T>(talk, &tree, |below| below * count)?;
    let mut part = values;
    part.resize(tree.below() * count, T::zeroed());
    for ((far, below, _), heard) in tree.children().zip(heard) {
        talk.heard(heard, &mut part[far * count..][..below * count]).await?;
    }
    if let Some(parent) = tree.parent() {
        talk.sent([talk.send(&part, parent)?]).await?;
        return Ok(None);
    }
    part.rotate_right(root * count); // the root's own came first
    Ok(Some(part))
}

pub(super) async fn scatter<T: Pod + Send>(
    talk: &Talk,
    mut values: Vec<T>,
    count: usize,
    root: usize,
) -> Result<Vec<T>> {
    let tree = Tree::of(talk, root);
    tree.prepare(talk)?;
    match tree.parent() {
        None => values.rotate_left(root * count),
        Some(parent) => {
            values = vec![T::zeroed(); tree.below() * count];
            let heard = talk.hear::<T>(values.len(), parent)?;
            talk.heard(heard, &mut values).await?;
        }
    }
    let part = |(far, below, child)| talk.send(&values[far * count..][..below * count], child);
    let sent: Vec<_> = tree.children().rev().map(part).collect::<Result<_>>()?;
    talk.sent(sent).await?;
    values.truncate(count);
    Ok(values)
}

/// Begins to receive from all children, as many values from each as `count` says of how many members' they are.
fn hear_children<T: Pod>(talk: &Talk, tree: &Tree, count: impl Fn(usize) -> usize) -> Result<Vec<Heard>> {
    tree.children().map(|(_, below, child)| talk.hear::<T>(count(below), child)).collect()
}
