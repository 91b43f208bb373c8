def Needs : Missing;
