// Everything, in its place.

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
