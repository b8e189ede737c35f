//! Which lines share a picture.

use super::Gallery;
use crate::group::phrase;
use crate::model::{Axes, Axis, distinct};
use crate::plain;

/// The most lines in a picture, which is also the number of hues.
const MOST: usize = 8;

/// The lines of one picture.
pub(crate) struct Shared<'a, T> {
    /// What distinguishes it from the other pictures, as a list of texts.
    pub(crate) place: Vec<String>,
    /// The data of each line, its name and its hue.
    pub(crate) lines: Vec<(&'a T, String, usize)>,
}

/// Paths, with and without containers, are lines of one picture. Every other setting has a picture of its own, unless
/// each of those would have only one line.
pub(crate) fn shared<'a, T>(
    items: &'a [T],
    of: impl Fn(&T) -> (&str, &Axes),
    varying: &[&'static Axis],
    gallery: &Gallery<'_>,
) -> Vec<Shared<'a, T>> {
    let words = |item: &T, axes: &[&'static Axis]| {
        let value = |axis: &&Axis| Some(phrase(axis.name, &plain::line(&(axis.show)(of(item).1)?)));
        axes.iter().filter_map(value).collect::<Vec<String>>()
    };
    let (inside, outside): (Vec<_>, Vec<_>) = varying
        .iter()
        .copied()
        .partition(|axis| axis.name == "containers");
    let mut places: Vec<Vec<String>> = items.iter().map(|item| words(item, &outside)).collect();
    let inside = if distinct(places.iter()).len() == items.len() {
        places.fill(Vec::new());
        varying.to_vec()
    } else {
        inside
    };
    let with_path = inside.is_empty() || distinct(items.iter().map(|i| of(i).0)).len() > 1;
    let name = |item: &T| {
        let path = with_path.then(|| plain::line(of(item).0));
        let names = path.into_iter().chain(words(item, &inside));
        names.collect::<Vec<_>>().join(" · ")
    };
    let hue = |item: &T, index: usize| {
        if inside.is_empty() {
            gallery.hue(of(item).0)
        } else {
            index
        }
    };
    let mut pictures = Vec::new();
    for place in distinct(places.iter()) {
        let placed = items.iter().zip(&places);
        let own: Vec<&T> = placed
            .filter(|(_, other)| *other == place)
            .map(|(item, _)| item)
            .collect();
        let parts = own.len().div_ceil(MOST);
        for (part, own) in own.chunks(MOST).enumerate() {
            let mut place = place.clone();
            place.extend((parts > 1).then(|| format!("{} of {parts}", part + 1)));
            let line = |(index, item): (usize, &&'a T)| (*item, name(item), hue(item, index));
            pictures.push(Shared {
                place,
                lines: own.iter().enumerate().map(line).collect(),
            });
        }
    }
    pictures
}

impl<T> Shared<'_, T> {
    /// A picture's title: what it shows, then what distinguishes it from the others.
    pub(crate) fn title(&self, what: String) -> String {
        let place = self.place.iter();
        place.fold(what, |title, place| format!("{title} · {place}"))
    }
}
