// Everything, in its place.

function showMenu() {
  const links = [...document.querySelectorAll("main section[id]")].map((section) => html("a", {
    href: `#${section.id}`,
    onclick: (event) => {
      event.preventDefault();
      change({ at: section.id });
      showSection(section.id, "start");
    },
  }, section.dataset.menu || section.querySelector("h2").textContent));
  find("#menu").append(...links);
}

showMap();
showCosts();
showPlaces();
showEverybody();
showAgreement();
showFates();
showParameters();
if (everybody.length) showSubscriber();
else find("#subscriber").remove();
csvOfTables();
showMenu();
// Charts above have their heights by now, so the section stays where it is scrolled to.
if (state.at) requestAnimationFrame(() => document.getElementById(state.at)?.scrollIntoView());
