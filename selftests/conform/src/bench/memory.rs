// SPDX-License-Identifier: GPL-2.0
//! A case's memory: regions with canaries, and chunks of them.

use super::Bench;
use crate::{
    explain::unexplained,
    frame::{Lists, Segment},
    memory::{Access, Region, GUARD},
    window::Window,
};

impl Bench<'_> {
    pub fn region(&mut self, len: usize) -> Result<usize, String> {
        self.region_at(len, Access::ReadWrite, 0)
    }

    pub fn region_at(
        &mut self,
        len: usize,
        access: Access,
        page_offset: usize,
    ) -> Result<usize, String> {
        let domain = self.connection()?.domain.clone();
        Ok(self.keep(Region::new(&domain, len, access, page_offset).map_err(|e| e.to_string())?))
    }

    /// Registered to the byte: the device refuses what goes beyond.
    pub fn region_exact(&mut self, len: usize, access: Access) -> Result<usize, String> {
        let domain = self.connection()?.domain.clone();
        Ok(self.keep(Region::exact(&domain, len, access, 0).map_err(|e| e.to_string())?))
    }

    /// Memory behind a key that the server can invalidate.
    pub fn window(&mut self, len: usize) -> Result<Segment, String> {
        let index = self.region_at(len, Access::Windowed, 0)?;
        let domain = self.connection()?.domain.clone();
        let window = Window::new(&domain).map_err(|e| e.to_string())?;
        let region = &mut self.regions[index].0;
        let (request, key) = window.bind(region);
        region.windows.push(key);
        let segment = Segment {
            handle: key,
            ..region.segment(0, len)
        };
        let connection = self.connection()?;
        connection
            .bind(window, request)
            .map_err(|e| format!("bind: {e}"))?;
        Ok(segment)
    }

    /// Take a region over; its content now is what has to stay.
    pub fn keep(&mut self, region: Region) -> usize {
        let before = region.snapshot();
        self.regions.push((region, before));
        self.regions.len() - 1
    }

    pub fn get(&mut self, region: usize) -> &mut Region {
        &mut self.regions[region].0
    }

    pub fn segment(&self, region: usize, offset: usize, len: usize) -> Segment {
        self.regions[region].0.segment(offset, len)
    }

    pub fn fill(&mut self, region: usize, offset: usize, data: &[u8]) {
        let (region, before) = &mut self.regions[region];
        region.fill(offset, data);
        before[GUARD + offset..GUARD + offset + data.len()].copy_from_slice(data);
    }

    /// A chunk of one region per segment, each with a key and canaries of its own.
    pub fn chunk(&mut self, lengths: &[usize]) -> Result<Vec<Segment>, String> {
        lengths
            .iter()
            .map(|&len| {
                let region = self.region(len)?;
                Ok(self.segment(region, 0, len))
            })
            .collect()
    }

    /// As chunk(), with this data in it.
    pub fn source(&mut self, data: &[u8], lengths: &[usize]) -> Result<Vec<Segment>, String> {
        let mut from = 0;
        lengths
            .iter()
            .map(|&len| {
                let region = self.region(len)?;
                let to = (from + len).min(data.len());
                self.fill(region, 0, &data[from.min(to)..to]);
                from = to;
                Ok(self.segment(region, 0, len))
            })
            .collect()
    }

    /// Segments next to each other in one region, all with its key.
    pub fn slices(&mut self, count: usize, len: usize) -> Result<Vec<Segment>, String> {
        let region = self.region(count * len)?;
        Ok((0..count)
            .map(|i| self.segment(region, i * len, len))
            .collect())
    }

    /// Chunks of a READ that fails may have changed whatever the reply says of them.
    pub fn written(&mut self, lists: &Lists) {
        self.writable.extend(lists.echoed().flatten());
    }

    /// Bytes outside what the server was allowed to write must not have changed.
    pub fn canaries(&self) -> Result<(), String> {
        for (region, before) in &self.regions {
            if let Some(at) = region.spoilt(before, &self.writable) {
                return Err(unexplained(format!(
                    "memory outside the advertised or reported ranges was written: offset {at} of a region of {}",
                    region.len()
                )));
            }
        }
        Ok(())
    }
}
